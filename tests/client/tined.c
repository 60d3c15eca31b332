// A real tined.

#include "tined.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "steps.h"

const char TINED_TOKEN[] = "only for tests: 0123456789abcdef";

// A port that was free a moment ago.
static unsigned port_find(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(fd, (struct sockaddr *)&address, size), 0);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    close(fd);
    return ntohs(address.sin_port);
}

static void places_choose(Tined *tined)
{
    snprintf(tined->data, sizeof(tined->data), "%s/data", test_dir());
    snprintf(tined->socket, sizeof(tined->socket), "%s/s", test_dir());
    CHECK(strlen(tined->socket) <= 107);
    snprintf(tined->url, sizeof(tined->url), "ipc://%s", tined->socket);
    snprintf(tined->nng_url, sizeof(tined->nng_url), "nng+ipc://%s", tined->socket);
    snprintf(tined->tcp_url, sizeof(tined->tcp_url), "tcp://127.0.0.1:%u", port_find());
    snprintf(tined->token_file, sizeof(tined->token_file), "%s/token", test_dir());
    int fd = open(tined->token_file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, TINED_TOKEN, strlen(TINED_TOKEN)), (ssize_t)strlen(TINED_TOKEN));
    close(fd);
}

static void become_tined(const Tined *tined)
{
    enum { ARGUMENTS_MAX = 20 };
    const char *arguments[ARGUMENTS_MAX] = {
        "tined",        "--data",       tined->data,       "--socket",    tined->socket, "--listen",
        tined->tcp_url, "--token-file", tined->token_file, "--log-level", "warning",
    };
    size_t count = 11;
    if (tined->events_max) {
        arguments[count++] = "--events-max";
        arguments[count++] = tined->events_max;
    }
    if (tined->flush_every) {
        arguments[count++] = "--durability";
        arguments[count++] = "relaxed";
        arguments[count++] = "--flush-every";
        arguments[count++] = tined->flush_every;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execv(TINED, (char *const *)(uintptr_t)arguments);
    _exit(127);
}

void tined_start(Tined *tined)
{
    if (!tined->data[0]) places_choose(tined);
    fflush(NULL);
    tined->pid = fork();
    CHECK(tined->pid >= 0);
    if (tined->pid == 0) become_tined(tined);
    CLEANUP(closep)
    Tine *tine = open_with(tined->url, (TineOpenOptions){.wait_for_server = true});
    Tine__V1__HealthRequest request = TINE__V1__HEALTH_REQUEST__INIT;
    Tine__V1__HealthResponse *response;
    TineStatus status;
    TineCallOptions options = {.timeout_ms = HARNESS_PATIENCE_MS, .out_status = &status};
    int code = tine_health(tine, &options, &request, &response);
    if (code) printf("tined does not serve: %s\n", status.message);
    CHECK_EQ(code, 0);
    tine__v1__health_response__free_unpacked(response, NULL);
}

static int tined_signal(Tined *tined, int signal_number)
{
    int status;
    CHECK_EQ(kill(tined->pid, signal_number), 0);
    CHECK_EQ(waitpid(tined->pid, &status, 0), tined->pid);
    tined->pid = 0;
    return status;
}

void tined_kill(Tined *tined)
{
    int status = tined_signal(tined, SIGKILL);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

void tined_stop(Tined *tined)
{
    int status = tined_signal(tined, SIGTERM);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

void tined_end(Tined *tined)
{
    if (tined->pid > 0) (void)tined_signal(tined, SIGKILL);
}
