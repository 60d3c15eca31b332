// NNG's settings and errors.

#include "transport/nng_setup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "os/socket_path.h"
#include "os/thread.h"
#include "transport/peer.h"

enum { SOCKET_MODE = 0600 };

void nng_setup(void)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (processors < TASK_THREADS_MIN) processors = TASK_THREADS_MIN;
    if (processors > TASK_THREADS_MAX) processors = TASK_THREADS_MAX;
    nng_init_set_parameter(NNG_INIT_NUM_TASK_THREADS, (uint64_t)processors);
    nng_init_set_parameter(NNG_INIT_NUM_EXPIRE_THREADS, 1);
    nng_init_set_parameter(NNG_INIT_NUM_POLLER_THREADS, 1);
    nng_init_set_parameter(NNG_INIT_NUM_RESOLVER_THREADS, 1);
}

static void *do_nothing(void *context)
{
    return context;
}

// NNG reports NNG_ENOMEM for a thread that it cannot start too, so this tries to start one.
static Error say_no_memory(ErrorDetail *detail, const char *what)
{
    pthread_t thread;
    Error error = thread_start(&thread, do_nothing, NULL, "serve NNG's sockets", detail);
    if (error) return error;
    pthread_join(thread, NULL);
    return error_say(detail, ERROR_OUT_OF_MEMORY, "%s: %s", what, strerror(ENOMEM));
}

Error nng_say(ErrorDetail *detail, const char *what, int failed)
{
    if (failed == NNG_ENOMEM) return say_no_memory(detail, what);
    const char *cause = failed == NNG_ENOFILES ? strerror(EMFILE) : nng_strerror(failed);
    return error_say(detail, failed == NNG_EADDRINUSE ? ERROR_UNAVAILABLE : ERROR_IO, "%s: %s",
                     what, cause);
}

Error nng_listen_ipc(nng_socket socket, const char *path, size_t frame_bytes_max,
                     ErrorDetail *detail, nng_listener *out)
{
    char url[NNG_MAXADDRLEN + sizeof("ipc://")];
    snprintf(url, sizeof(url), "ipc://%s", path);
    // Otherwise NNG would connect to the socket at the path, to see whether a process listens.
    Error error = socket_path_clear(path, detail);
    if (error) return error;
    int failed = nng_listener_create(out, socket, url);
    if (!failed) failed = nng_listener_set_int(*out, NNG_OPT_IPC_PERMISSIONS, SOCKET_MODE);
    if (!failed) failed = nng_listener_set_size(*out, NNG_OPT_RECVMAXSZ, frame_bytes_max);
    if (!failed) failed = nng_listener_start(*out, 0);
    return failed ? nng_say(detail, path, failed) : ERROR_NONE;
}

bool nng_peer_is_allowed(nng_pipe pipe)
{
    uint64_t uid = 0, pid = 0;
    int failed = nng_pipe_get_uint64(pipe, NNG_OPT_IPC_PEER_UID, &uid);
    (void)nng_pipe_get_uint64(pipe, NNG_OPT_IPC_PEER_PID, &pid);
    return peer_is_allowed(failed ? -1 : (int64_t)uid, (int64_t)pid);
}
