// An aged store.

#include "aged.h"

static void append_many(Bench *bench, const char *session, size_t text_bytes, size_t count,
                        bool has_operation_ids)
{
    Buffer request = append_request(session, text_bytes);
    if (has_operation_ids) {
        Buffer with_id = request_with_operation_id(&request);
        buffer_free(&request);
        request = with_id;
    }
    bench_run_many(bench, &request, count);
    buffer_free(&request);
}

void aged_make(const char *path, size_t messages, bool has_operation_ids, IdText *sessions,
               size_t session_count)
{
    enum { FILLERS = 40 };
    Bench bench;
    IdText fillers[FILLERS];
    size_t filler_messages = messages / FILLERS + 1;
    bench_open(&bench, path, /* is_ephemeral= */ true);
    for (size_t i = 0; i < session_count; i++)
        sessions[i] = bench_session(&bench, "");
    for (size_t i = 0; i < FILLERS; i++) {
        fillers[i] = bench_session(&bench, "filler");
        size_t text_bytes = i % 3 ? APPEND_TEXT_BYTES : 3 * APPEND_TEXT_BYTES;
        append_many(&bench, fillers[i].text, text_bytes, filler_messages, has_operation_ids);
        append_many(&bench, sessions[i % session_count].text, APPEND_TEXT_BYTES, filler_messages,
                    has_operation_ids);
    }
    for (size_t i = 0; i < FILLERS; i += 2)
        bench_purge(&bench, fillers[i].text);
    bench_wait_for_purges(&bench);
    for (size_t i = 0; i < session_count; i++) { // the newest rows are those of an append
        append_many(&bench, sessions[i].text, APPEND_TEXT_BYTES, 1, has_operation_ids);
    }
    bench_close(&bench);
}
