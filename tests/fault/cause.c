// Calls that fail, with what is logged and what the caller is told.

#include "cause.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/log.h"

enum { LOG_BYTES_MAX = 1 << 16, TEXT_BYTES = 3000 };

void cause_open(Cause *scene, unsigned flush_ms)
{
    *scene = (Cause){.options.store = {.directory = test_dir(),
                                       .map_bytes = (size_t)1 << 28,
                                       .flush_ms = flush_ms,
                                       .boot_id = "one"}};
    snprintf(scene->log, sizeof(scene->log), "%s/report", test_dir());
    int log = open(scene->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    CHECK(log >= 0);
    log_configure(LOG_ERROR, log);
    CHECK_EQ(engine_open(&scene->options, NULL, &scene->engine), ERROR_NONE);
    engine_new_session(scene->engine, NULL, scene->session);
}

Error cause_call(Cause *scene, Slice bytes)
{
    Rpc rpc;
    rpc_init(&rpc);
    rpc_reset(&rpc);
    rpc.request = bytes;
    engine_run(scene->engine, &rpc);
    Error error = rpc.error;
    Slice reply = buffer_slice(&rpc.reply);
    Response *response = tine__v1__response__unpack(NULL, reply.size, reply.bytes);
    CHECK(response != NULL);
    if (error) CHECK_EQ(response->status->code, error_status(error));
    snprintf(scene->said, sizeof(scene->said), "%s", error ? response->status->message : "");
    tine__v1__response__free_unpacked(response, NULL);
    rpc_free(&rpc);
    free((void *)(uintptr_t)bytes.bytes);
    return error;
}

Slice cause_append_text_request(Cause *scene, char *text, bool is_sync)
{
    AppendMessageRequest request = APPEND_MESSAGE_REQUEST__INIT;
    NewMessage message = NEW_MESSAGE__INIT;
    message.role = ROLE_USER;
    message.text = text;
    request.session_id = scene->session;
    request.message = &message;
    return is_sync ? engine_request_synced(METHOD_APPEND_MESSAGE, &request)
                   : engine_request(METHOD_APPEND_MESSAGE, &request, NULL, 0);
}

Slice cause_append_request(Cause *scene, bool is_sync)
{
    static char text[TEXT_BYTES];
    memset(text, 'x', sizeof(text) - 1);
    return cause_append_text_request(scene, text, is_sync);
}

Error cause_append(Cause *scene)
{
    return cause_call(scene, cause_append_request(scene, /* is_sync= */ false));
}

Slice cause_get_session_request(Cause *scene)
{
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    request.session_id = scene->session;
    return engine_request(METHOD_GET_SESSION, &request, NULL, 0);
}

Error cause_get_session(Cause *scene)
{
    return cause_call(scene, cause_get_session_request(scene));
}

// Replaces DIR in `pattern` by the store's directory.
static const char *with_directory(const char *pattern)
{
    static char text[2 * ERROR_DETAIL_BYTES_MAX];
    const char *at = strstr(pattern, "DIR");
    if (!at) return pattern;
    snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - pattern), pattern, test_dir(), at + 3);
    return text;
}

void cause_check_logged(const Cause *scene, const char *pattern)
{
    static char all[LOG_BYTES_MAX];
    int file = open(scene->log, O_RDONLY | O_CLOEXEC);
    ssize_t size = read(file, all, sizeof(all) - 1);
    close(file);
    CHECK(size >= 0);
    all[size] = '\0';
    const char *line = with_directory(pattern);
    if (!strstr(all, line)) printf("not logged: %s\n%s", line, all);
    CHECK(strstr(all, line) != NULL);
}

void cause_check_said(const Cause *scene, const char *pattern)
{
    CHECK_STR(scene->said, with_directory(pattern));
}
