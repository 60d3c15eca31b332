// What the sockets of the transport and of the bus share.

#include "transport/nng_setup.h"

#include <stdio.h>
#include <unistd.h>

#include "base/limits.h"
#include "os/socket_path.h"
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

Error nng_say(ErrorDetail *detail, const char *what, int failed)
{
    if (failed == NNG_ENOMEM) return ERROR_OUT_OF_MEMORY;
    return error_say(detail, failed == NNG_EADDRINUSE ? ERROR_UNAVAILABLE : ERROR_IO, "%s: %s",
                     what, nng_strerror(failed));
}

Error nng_listen_ipc(nng_socket socket, const char *path, size_t frame_bytes_max,
                     ErrorDetail *detail, nng_listener *out)
{
    char url[NNG_MAXADDRLEN + sizeof("ipc://")];
    snprintf(url, sizeof(url), "ipc://%s", path);
    // Left to itself NNG would connect to what lies at the path, to see whether it lives.
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
