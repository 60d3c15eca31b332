// ListParts: from the index, in the order of messages and parts.

#include <stdio.h>

#include "base/limits.h"
#include "open_message.h"
#include "os/random.h"

static Part *use(Fixture *f, const char *name, const char *call_id)
{
    Part *part = tool_part(f, "", name, TOOL_STATE_COMPLETED);
    part->tool_use->id = CHARS(call_id);
    return part;
}

static Part *result(Fixture *f, const char *name, const char *call_id)
{
    Part *part = fixture_alloc(f, sizeof(Part));
    part->kind_case = PART__KIND_TOOL_RESULT;
    part->tool_result = fixture_alloc(f, sizeof(ToolResult));
    part->tool_result->tool_use_id = CHARS(call_id);
    part->tool_result->tool_name = CHARS(name);
    return part;
}

static Part *file(Fixture *f, const char *name)
{
    Part *part = fixture_alloc(f, sizeof(Part));
    part->kind_case = PART__KIND_FILE;
    part->file = fixture_alloc(f, sizeof(File));
    part->file->mime_type = "text/x-c";
    part->file->filename = CHARS(name);
    part->file->source_case = FILE__SOURCE_URL;
    part->file->url = "file:///x";
    return part;
}

static Part *extension(Fixture *f, const char *type)
{
    Part *part = fixture_alloc(f, sizeof(Part));
    part->kind_case = PART__KIND_EXTENSION;
    part->extension = fixture_alloc(f, sizeof(Extension));
    part->extension->type = CHARS(type);
    return part;
}

static const char *parts_ok(Fixture *f, const char *session, Part **parts, size_t count)
{
    NewMessage message = {.role = ROLE_ASSISTANT, .n_parts = count, .parts = parts};
    return entry_ok(f, session, &message)->id;
}

static const char *name_of(const Part *part)
{
    switch (part->kind_case) {
    case PART__KIND_TOOL_USE: return part->tool_use->name;
    case PART__KIND_TOOL_RESULT: return part->tool_result->tool_name;
    case PART__KIND_FILE: return part->file->filename;
    case PART__KIND_EXTENSION: return part->extension->type;
    case PART__KIND_TEXT:
    case PART__KIND_THINKING:
    case PART__KIND_IMAGE:
    case PART__KIND__NOT_SET:
    default: return "?";
    }
}

// Kind and name of every part of all pages: "use:ls file:a.c".
static const char *listed(Fixture *f, ListPartsRequest request)
{
    static const char *const KINDS[] = {
        [PART__KIND_TOOL_USE] = "use",
        [PART__KIND_TOOL_RESULT] = "result",
        [PART__KIND_FILE] = "file",
        [PART__KIND_EXTENSION] = "ext",
    };
    enum { BYTES_MAX = 8192 };
    char *text = fixture_alloc(f, BYTES_MAX);
    size_t size = 0;
    do {
        ListPartsResponse *page = CALL_OK(f, list_parts, ListParts, request);
        for (size_t i = 0; i < page->n_parts; i++) {
            const Part *part = page->parts[i]->part;
            size += (size_t)snprintf(text + size, BYTES_MAX - size, "%s%s:%s", size ? " " : "",
                                     KINDS[part->kind_case], name_of(part));
        }
        request.cursor = page->next_cursor;
    } while (*request.cursor);
    return text;
}

// A session with parts of every kind, in three messages.
static void fill(Fixture *f, const char *session)
{
    Part *first[] = {text_part(f, "", "t"), use(f, "ls", "c1"), use(f, "cat", "c2"),
                     extension(f, "step-start")};
    Part *second[] = {result(f, "ls", "c1"), file(f, "a.c"), result(f, "cat", "c2")};
    Part *third[] = {extension(f, "patch"), use(f, "ls", "c3"), file(f, "b.c")};
    parts_ok(f, session, first, 4);
    parts_ok(f, session, second, 3);
    parts_ok(f, session, third, 3);
}

static const char ALL[] = "use:ls use:cat ext:step-start result:ls file:a.c result:cat ext:patch "
                          "use:ls file:b.c";

TEST(list_parts_filters_by_kind_name_and_call)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    fill(f, session);
    fill(f, session_ok(f)); // another session's are not in it
    PartKind uses[] = {PART_KIND_TOOL_USE}, files[] = {PART_KIND_FILE};
    PartKind tools[] = {PART_KIND_TOOL_RESULT, PART_KIND_TOOL_USE};
    PartKind extensions[] = {PART_KIND_EXTENSION};
    ListPartsRequest request = {.session_id = CHARS(session)};
    CHECK_STR(listed(f, request), ALL);
    request.n_kinds = 1;
    request.kinds = uses;
    CHECK_STR(listed(f, request), "use:ls use:cat use:ls");
    request.kinds = files;
    CHECK_STR(listed(f, request), "file:a.c file:b.c");
    request.kinds = extensions;
    request.name = "patch";
    CHECK_STR(listed(f, request), "ext:patch");
    request.n_kinds = 2;
    request.kinds = tools;
    request.name = "ls";
    CHECK_STR(listed(f, request), "use:ls result:ls use:ls");
    request.call_id = "c1";
    CHECK_STR(listed(f, request), "use:ls result:ls");
    request.name = "cat";
    CHECK_STR(listed(f, request), "");
    request = (ListPartsRequest){.session_id = CHARS(session), .call_id = "c2"};
    CHECK_STR(listed(f, request), "use:cat result:cat");
    request.call_id = "c";
    CHECK_STR(listed(f, request), "");
}

TEST(list_parts_says_where_each_part_is)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_ok(f, session, ROLE_USER, "m");
    Part *parts[] = {text_part(f, "t", "long"), use(f, "ls", "c1")};
    parts[1]->id = "p1";
    parts[0]->text->text = filled(f, 'x', 3 * VALUE_BYTES_MAX);
    const char *id = parts_ok(f, session, parts, 2);
    ListPartsResponse *page = CALL_OK(f, list_parts, ListParts, {.session_id = CHARS(session)});
    CHECK_EQ(page->n_parts, 1);
    CHECK_STR(page->parts[0]->message_id, id);
    CHECK_EQ(page->parts[0]->index, 1);
    CHECK_STR(page->parts[0]->part->id, "p1");
    CHECK_STR(page->parts[0]->part->tool_use->id, "c1");
    CHECK_EQ(page->parts[0]->part->tool_use->state, TOOL_STATE_COMPLETED);
    CHECK_STR(page->next_cursor, "");
}

TEST(list_parts_pages_by_limit_and_bytes)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    fill(f, session);
    for (uint32_t limit = 1; limit <= 10; limit++) {
        CHECK_STR(listed(f, (ListPartsRequest){.session_id = CHARS(session), .limit = limit}), ALL);
    }
    for (uint32_t bytes = 1; bytes < 1500; bytes += 100) {
        CHECK_STR(listed(f, (ListPartsRequest){.session_id = CHARS(session), .page_bytes = bytes}),
                  ALL);
    }
    CHECK_EQ(
        CALL_OK(f, list_parts, ListParts, {.session_id = CHARS(session), .page_bytes = 1})->n_parts,
        1);
}

TEST(list_parts_ends_a_page_after_so_many_scanned_rows)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    enum { PARTS = 4000, MESSAGES = 3 };
    Part **parts = fixture_alloc(f, PARTS * sizeof(Part *));
    for (size_t i = 0; i < PARTS; i++)
        parts[i] = use(f, "ls", "c");
    for (size_t i = 0; i < MESSAGES; i++) {
        if (i == MESSAGES - 1) parts[PARTS - 1] = use(f, "last", "c");
        parts_ok(f, session, parts, PARTS);
    }
    ListPartsRequest request = {.session_id = CHARS(session), .name = "last"};
    ListPartsResponse *page = CALL_OK(f, list_parts, ListParts, request);
    CHECK_EQ(page->n_parts, 0);
    CHECK(*page->next_cursor != '\0');
    CHECK_STR(listed(f, request), "use:last");
    request.name = "ls";
    size_t count = 0;
    do {
        page = CALL_OK(f, list_parts, ListParts, request);
        count += page->n_parts;
        request.cursor = page->next_cursor;
    } while (*request.cursor);
    CHECK_EQ(count, MESSAGES * PARTS - 1);
}

TEST(list_parts_ends_a_page_after_so_many_bytes_read)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const size_t size = 12 << 20, on_a_page = PART_LIST_READ_BYTES_MAX / size + 1;
    Part *parts[] = {use(f, "ls", "c"), text_part(f, "", filled(f, 'x', size))};
    for (size_t i = 0; i <= on_a_page; i++)
        parts_ok(f, session, parts, 2);
    ListPartsRequest request = {.session_id = CHARS(session)};
    ListPartsResponse *page = CALL_OK(f, list_parts, ListParts, request);
    CHECK_EQ(page->n_parts, on_a_page);
    request.cursor = page->next_cursor;
    page = CALL_OK(f, list_parts, ListParts, request);
    CHECK_EQ(page->n_parts, 1);
    CHECK_STR(page->next_cursor, "");
}

TEST(list_parts_follows_appends_replacements_and_removals)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = open_ok(f, session, ROLE_ASSISTANT);
    Part *part = use(f, "ls", "c1");
    part->id = "p";
    append_part_ok(f, id, text_part(f, "t", "x"));
    append_part_ok(f, id, part);
    ListPartsRequest request = {.session_id = CHARS(session)};
    CHECK_STR(listed(f, request), "use:ls");
    part = file(f, "a.c");
    part->id = "p";
    append_part_ok(f, id, part);
    CHECK_STR(listed(f, request), "file:a.c");
    seal_ok(f, id, (SealMessageRequest){.status = 0});
    CHECK_STR(listed(f, request), "file:a.c");
    Part *other[] = {use(f, "cat", "c2")};
    const char *purged = parts_ok(f, session, other, 1);
    CHECK_STR(listed(f, request), "file:a.c use:cat");
    message_delete_ok(f, id);
    CHECK_STR(listed(f, request), "use:cat");
    message_purge_ok(f, purged);
    CHECK_STR(listed(f, request), "");
    check_store_ok(f);
}

TEST(list_parts_is_of_own_entries_and_reads_deleted_sessions)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    fill(f, session);
    CHECK_STR(listed(f, (ListPartsRequest){.session_id = CHARS(fork_ok(f, session, NULL))}), "");
    delete_ok(f, session);
    CHECK_STR(listed(f, (ListPartsRequest){.session_id = CHARS(session)}), ALL);
}

TEST(list_parts_refuses_what_it_cannot_answer)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    fill(f, session);
    PartKind none[] = {PART_KIND_UNSPECIFIED};
    CALL_FAILS(f, list_parts, ListParts, "INVALID_ARGUMENT",
               {.session_id = CHARS(session), .n_kinds = 1, .kinds = none});
    CHECK(strstr(f->status.message, "kinds"));
    CALL_FAILS(f, list_parts, ListParts, "SESSION_NOT_FOUND", {.session_id = UNKNOWN_ID});
    CALL_FAILS(f, list_parts, ListParts, "INVALID_ARGUMENT", {.session_id = ""});
    CALL_FAILS(f, list_parts, ListParts, "INVALID_ARGUMENT",
               {.session_id = CHARS(session), .limit = LIST_LIMIT_MAX + 1});
    CALL_FAILS(f, list_parts, ListParts, "INVALID_ARGUMENT",
               {.session_id = CHARS(session), .cursor = "x"});
    char *cursor =
        CALL_OK(f, list_parts, ListParts, {.session_id = CHARS(session), .limit = 1})->next_cursor;
    CALL_FAILS(f, list_parts, ListParts, "INVALID_ARGUMENT",
               {.session_id = CHARS(session), .cursor = cursor, .name = "ls"});
}

// Against a filter over all parts of all messages.
TEST(list_parts_equals_a_filter_over_every_message)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Random random;
    random_seed(&random, test_seed());
    static const char *const NAMES[] = {"a", "b", "c"};
    enum { BYTES_MAX = 8192 };
    char *expected = fixture_alloc(f, BYTES_MAX);
    size_t size = 0;
    for (size_t i = 0; i < test_scaled(60); i++) {
        Part *parts[6];
        size_t count = random_below(&random, 6);
        for (size_t j = 0; j < count; j++) {
            const char *name = NAMES[random_below(&random, 3)];
            uint64_t kind = random_below(&random, 5);
            parts[j] = kind == 0   ? text_part(f, "", name)
                       : kind == 1 ? use(f, name, "c")
                       : kind == 2 ? result(f, name, "c")
                       : kind == 3 ? file(f, name)
                                   : extension(f, name);
            if (kind != 1 && kind != 4) continue;
            if (strcmp(name, "b") != 0) continue;
            size += (size_t)snprintf(expected + size, BYTES_MAX - size, "%s%s", size ? " " : "",
                                     kind == 1 ? "use:b" : "ext:b");
        }
        parts_ok(f, session, parts, count);
    }
    PartKind kinds[] = {PART_KIND_TOOL_USE, PART_KIND_EXTENSION};
    ListPartsRequest request = {.session_id = CHARS(session),
                                .n_kinds = 2,
                                .kinds = kinds,
                                .name = "b",
                                .limit = 1 + (uint32_t)random_below(&random, 20)};
    CHECK_STR(listed(f, request), expected);
}
