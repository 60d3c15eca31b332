// Parts: a query by kind in a session of 24 000 messages and 100 000 parts, and appending a part to
// a message that is short and to one that is long.

#include <stdio.h>

#include "fields.h"
#include "os/clock.h"
#include "rows.h"

enum { RESULT_COUNT = 1000, PART_TEXT_BYTES = 512 };

static Part *text_of(Part *part, Text *text, char *content)
{
    *part = (Part)PART__INIT;
    *text = (Text)TEXT__INIT;
    text->text = content;
    part->kind_case = PART__KIND_TEXT;
    part->text = text;
    return part;
}

static Part *tool_of(Part *part, ToolUse *use, const char *name)
{
    *part = (Part)PART__INIT;
    *use = (ToolUse)TOOL_USE__INIT;
    use->id = "call_1";
    use->name = (char *)(uintptr_t)name;
    use->input_case = TOOL_USE__INPUT_INPUT_JSON;
    use->input_json = "{\"path\":\"server/store/message.c\"}";
    part->kind_case = PART__KIND_TOOL_USE;
    part->tool_use = use;
    return part;
}

// A message of so many parts: a tool use, and text.
static Buffer message_request(const char *session, size_t part_count, const char *tool,
                              MessageStatus status)
{
    static char content[PART_TEXT_BYTES + 1];
    memset(content, 'x', PART_TEXT_BYTES);
    enum { PARTS_MAX = 8 };
    Part parts[PARTS_MAX], *pointers[PARTS_MAX];
    Text texts[PARTS_MAX];
    ToolUse use;
    require(part_count <= PARTS_MAX, "at most %d parts", PARTS_MAX);
    for (size_t i = 0; i < part_count; i++) {
        pointers[i] =
            i == 0 ? tool_of(&parts[i], &use, tool) : text_of(&parts[i], &texts[i], content);
    }
    NewMessage message = NEW_MESSAGE__INIT;
    message.role = ROLE_ASSISTANT;
    message.status = status;
    message.n_parts = part_count;
    message.parts = pointers;
    AppendMessageRequest request = APPEND_MESSAGE_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)session;
    request.message = &message;
    return request_make(METHOD_APPEND_MESSAGE, &request.base);
}

// 24 000 messages with 100 000 parts, in the order of which every so many a rare tool is used.
static void fill(Bench *bench, const char *session, size_t messages)
{
    Buffer rare = message_request(session, 4, "rare", MESSAGE_STATUS_COMPLETE);
    Buffer four = message_request(session, 4, "read", MESSAGE_STATUS_COMPLETE);
    Buffer five = message_request(session, 5, "read", MESSAGE_STATUS_COMPLETE);
    for (size_t done = 0; done < messages; done += 24) {
        bench_run_many(bench, &rare, 1);
        bench_run_many(bench, &four, 19);
        bench_run_many(bench, &five, 4);
    }
    buffer_free(&rare);
    buffer_free(&four);
    buffer_free(&five);
}

static void query(const Options *options, Bench *bench, const char *session, const char *name)
{
    PartKind kinds[] = {PART_KIND_TOOL_USE};
    ListPartsRequest request = LIST_PARTS_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)session;
    request.kinds = kinds;
    request.n_kinds = 1;
    request.name = (char *)(uintptr_t)name;
    request.limit = RESULT_COUNT;
    Buffer bytes = request_make(METHOD_LIST_PARTS, &request.base);
    Samples samples = {.values = NULL};
    size_t found = 0;
    for (size_t i = 0; i < (options->is_quick ? 20u : 200u); i++) {
        int64_t t0 = clock_monotonic_ns();
        Slice reply = bench_run(bench, &bytes);
        samples_add(&samples, clock_monotonic_ns() - t0);
        WireField field;
        found = 0;
        while (wire_next(&reply, &field))
            found += field.number == FIELD_LIST_PARTS_RESPONSE_PARTS;
    }
    char row[128];
    snprintf(row, sizeof(row), "parts of a kind%s%s: ms for a page", *name ? ", tool " : "", name);
    report_ratio_at_most(row, samples_median_us(&samples) / 1e3, 10, "%zu results", found);
    samples_free(&samples);
    buffer_free(&bytes);
}

static Buffer part_request(const char *message, size_t text_bytes)
{
    static char content[1024 * 1024 + 1];
    memset(content, 'x', text_bytes);
    content[text_bytes] = '\0';
    Part part;
    Text text;
    AppendPartRequest request = APPEND_PART_REQUEST__INIT;
    request.message_id = (char *)(uintptr_t)message;
    request.part = text_of(&part, &text, content);
    return request_make(METHOD_APPEND_PART, &request.base);
}

// Two open messages in one session, of which one is `bytes` long.
static void append_flat(const Options *options, Bench *bench, const char *session)
{
    const size_t bytes = 15 * 1024 * 1024, piece = 512 * 1024;
    Buffer open = message_request(session, 0, "", MESSAGE_STATUS_OPEN);
    IdText ids[2] = {reply_id(bench_run(bench, &open)), reply_id(bench_run(bench, &open))};
    Buffer large = part_request(ids[1].text, piece);
    for (size_t done = 0; done + piece <= bytes; done += piece)
        (void)bench_run(bench, &large);
    Buffer requests[2] = {part_request(ids[0].text, PART_TEXT_BYTES),
                          part_request(ids[1].text, PART_TEXT_BYTES)};
    Samples samples[2] = {{.values = NULL}};
    for (size_t i = 0; i < (options->is_quick ? 300u : 1000u); i++) {
        for (int j = 0; j < 2; j++) {
            int64_t t0 = clock_monotonic_ns();
            (void)bench_run(bench, &requests[j]);
            samples_add(&samples[j], clock_monotonic_ns() - t0);
        }
    }
    double short_us = samples_median_us(&samples[0]), long_us = samples_median_us(&samples[1]);
    report_ratio_at_most("append of a part, message of 15 MiB / of none", long_us / short_us, 1.3,
                         "%.1f / %.1f us", long_us, short_us);
    for (int j = 0; j < 2; j++) {
        samples_free(&samples[j]);
        buffer_free(&requests[j]);
    }
    buffer_free(&large);
    buffer_free(&open);
}

void bench_part(const Options *options)
{
    if (!row_is_wanted(options, "part")) return;
    char path[512];
    bench_path(options, "part", path, sizeof(path));
    Bench bench;
    bench_open(&bench, path, /* is_ephemeral= */ true);
    IdText session = bench_session(&bench, "");
    fill(&bench, session.text, 24000);
    query(options, &bench, session.text, "");
    query(options, &bench, session.text, "rare");
    append_flat(options, &bench, session.text);
    bench_close(&bench);
    bench_remove(path);
}
