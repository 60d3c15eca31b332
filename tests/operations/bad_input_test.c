// Bad input: bytes that are no request, and requests that no client would send. Each is refused
// with its reason and the field's name, and leaves nothing behind.

#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "entries.h"
#include "request_fields.h"
#include "text/utf8.h"

static void send_text(Fixture *f, const char *text)
{
    fixture_send(f, slice_of(text));
}

TEST(bad_envelope_garbage_is_refused)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    send_text(f, "GET / HTTP/1.1\r\n\r\n");
    raw_expect(f, "INVALID_ARGUMENT", "");
    send_text(f, "\xff\xff\xff\xff\xff\xff");
    raw_expect(f, "INVALID_ARGUMENT", "Request");
    send_text(f, "\x0a\x7fshort");
    raw_expect(f, "INVALID_ARGUMENT", "Request");
    send_text(f, "");
    raw_expect(f, "INVALID_ARGUMENT", "method");
    fixture_send(f, slice("\0\0\0", 3));
    raw_expect(f, "INVALID_ARGUMENT", "Request");
}

TEST(bad_envelope_truncated_anywhere_is_refused_or_incomplete)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    AppendMessageRequest request = {
        .session_id = CHARS(session),
        .message = text_message(f, ROLE_USER, "hello"),
    };
    Raw *body = raw_of(f, &append_message_request__descriptor, &request.base);
    Raw *whole = raw_request(f, "AppendMessage", "op", body);
    for (size_t size = 0; size < whole->size; size++) {
        fixture_send(f, slice(whole->bytes, size));
        CHECK(f->status.code != STATUS_OK);
        CHECK(*f->status.message != '\0');
    }
    CHECK_EQ(newest_sequence(f), 1);
    raw_send(f, whole);
    raw_expect(f, "", "");
}

TEST(a_field_of_the_envelope_with_another_type_is_an_unknown_one)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    Raw *request = raw_request(f, "Health", NULL, raw_begin(f));
    raw_append(request, "\x19\xff\xff\xff\xff\xff\xff\xff\xff", 9); // no timeout of -1 ms
    raw_append(request, "\x08\x01", 2);                             // no method
    raw_send(f, request);
    raw_expect(f, "", "");
}

TEST(bad_body_truncated_anywhere_is_refused)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    PublishEventRequest request = {
        .session_id = CHARS(session), .type = "mine", .data_json = "[1, 2, 3]"};
    Raw *body = raw_of(f, &publish_event_request__descriptor, &request.base);
    size_t whole = body->size;
    for (size_t size = 0; size < whole; size++) {
        body->size = size;
        uint64_t before = newest_sequence(f);
        raw_send(f, raw_request(f, "PublishEvent", NULL, body));
        // Cut between two fields it is another, shorter request.
        CHECK_EQ(newest_sequence(f), before + (f->status.code == STATUS_OK));
        if (f->status.code != STATUS_OK) CHECK_EQ(f->status.code, STATUS_INVALID_ARGUMENT);
    }
}

TEST(bad_method_is_unimplemented)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    raw_fails(f, "Frobnicate", raw_begin(f), "UNIMPLEMENTED", "Frobnicate");
    CHECK_EQ(f->status.code, STATUS_UNIMPLEMENTED);
    CHECK(strstr(f->status.message, TINE_VERSION));
    const char *paths[] = {"GetSession", "/tine.v1.StoreService/getSession",
                           "/tine.v1.StoreService/GetSession/", "/tine.v2.StoreService/GetSession",
                           "\xff\xfe"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
        Raw *request = raw_begin(f);
        raw_text(request, 1, paths[i]);
        raw_send(f, request);
        raw_expect(f, "UNIMPLEMENTED", "");
    }
    Raw *request = raw_begin(f);
    raw_text(request, 1, filled(f, 'm', METHOD_BYTES_MAX + 1));
    raw_send(f, request);
    raw_expect(f, "TOO_LONG", "method");
}

TEST(bad_operation_id_is_refused)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    Raw *body = raw_begin(f);
    raw_text(body, 2, "mine");
    raw_send(f, raw_request(f, "PublishEvent", filled(f, 'o', OPERATION_ID_BYTES_MAX + 1), body));
    raw_expect(f, "TOO_LONG", "operation_id");
    raw_send(f, raw_request(f, "PublishEvent", "\xff", body));
    raw_expect(f, "INVALID_UTF8", "operation_id");
    Raw *request = raw_begin(f);
    raw_text(request, 1, "/tine.v1.StoreService/PublishEvent");
    raw_bytes(request, 2, "a\0b", 3);
    raw_message(request, 15, body);
    raw_send(f, request);
    raw_expect(f, "INVALID_UTF8", "operation_id");
    CHECK_EQ(newest_sequence(f), 0);
    raw_send(f, raw_request(f, "PublishEvent", filled(f, 'o', OPERATION_ID_BYTES_MAX), body));
    raw_expect(f, "", "");
    raw_send(f, raw_request(f, "PublishEvent", filled(f, 'o', OPERATION_ID_BYTES_MAX), body));
    raw_expect(f, "", "");
    CHECK_EQ(newest_sequence(f), 1);
}

// One operation id that begins like another, with a byte that sorts low, is another.
TEST(operation_ids_that_begin_alike_are_apart)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *ids[] = {"a", "a\x01", "aa", "a\x01\x01", "A"};
    for (size_t i = 0; i < 5; i++) {
        CALL_OK_WITH(f, ids[i], publish_event, PublishEvent, {.type = "mine"});
        CHECK_EQ(newest_sequence(f), i + 1);
    }
    for (size_t i = 0; i < 5; i++) {
        uint64_t sequence =
            CALL_OK_WITH(f, ids[i], publish_event, PublishEvent, {.type = "mine"})->sequence;
        CHECK_EQ(sequence, i + 1);
    }
}

static void send_with_timeout(Fixture *f, const char *method, const Raw *body, int64_t timeout_ms)
{
    char path[METHOD_BYTES_MAX];
    snprintf(path, sizeof(path), "/tine.v1.StoreService/%s", method);
    Raw *request = raw_begin(f);
    raw_text(request, 1, path);
    raw_number(request, 3, (uint64_t)timeout_ms);
    raw_message(request, 15, body);
    raw_send(f, request);
}

TEST(bad_timeout_in_the_past_runs_nothing)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Raw *publish = raw_begin(f);
    raw_text(publish, 2, "mine");
    Raw *get = raw_begin(f);
    raw_text(get, 1, session);
    const int64_t past[] = {-1, -1000, INT64_MIN};
    for (size_t i = 0; i < 3; i++) {
        send_with_timeout(f, "PublishEvent", publish, past[i]);
        raw_expect(f, "DEADLINE_EXCEEDED", "timeout_ms");
        CHECK_EQ(f->status.code, STATUS_DEADLINE_EXCEEDED);
        send_with_timeout(f, "GetSession", get, past[i]);
        raw_expect(f, "DEADLINE_EXCEEDED", "timeout_ms");
    }
    CHECK_EQ(newest_sequence(f), 1);
    const int64_t future[] = {0, 60000, INT64_MAX};
    for (size_t i = 0; i < 3; i++) {
        send_with_timeout(f, "PublishEvent", publish, future[i]);
        raw_expect(f, "", "");
    }
}

static bool is_id(const RequestField *field)
{
    // Ids of tine's own; the others are their callers'.
    static const char *const NAMES[] = {
        "session_id",       "message_id",         "memory_id",         "parent_id",
        "expected_head_id", "through_message_id", "before_message_id",
    };
    if (strcmp(field->method->name, "PublishEvent") == 0) return false;
    if (strcmp(field->method->name, "BroadcastEvent") == 0) return false;
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(*NAMES); i++) {
        if (strcmp(field->field->name, NAMES[i]) == 0) return true;
    }
    return false;
}

static const char *const WRONG_IDS[] = {
    "01ARZ3NDEKTSV4RRFFQ69G5FA",   // 25 characters
    "01ARZ3NDEKTSV4RRFFQ69G5FAVX", // 27
    "01arz3ndektsv4rrffq69g5fav",  // lower case
    "01ARZ3NDEKTSV4RRFFQ69G5FAU",  "01ARZ3NDEKTSV4RRFFQ69G5FAI",
    "01ARZ3NDEKTSV4RRFFQ69G5FAL",  "01ARZ3NDEKTSV4RRFFQ69G5FAO",
    "81ARZ3NDEKTSV4RRFFQ69G5FAV", // over 128 bits
    "Z1ARZ3NDEKTSV4RRFFQ69G5FAV",  " 1ARZ3NDEKTSV4RRFFQ69G5FAV",
    "01ARZ3NDEKTSV4RRFFQ69G5FA-",  "ééééééééééééé",
};

TEST(bad_ids_are_refused_wherever_a_session_is_named)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    for (size_t i = 0; i < sizeof(WRONG_IDS) / sizeof(*WRONG_IDS); i++) {
        Raw *body = raw_begin(f);
        raw_text(body, 1, WRONG_IDS[i]);
        raw_fails(f, "GetSession", body, "INVALID_ARGUMENT", "session_id");
        CHECK(utf8_is_valid(slice_of(f->status.message)));
        raw_fails(f, "GetMessage", body, "INVALID_ARGUMENT", "message_id");
        raw_fails(f, "BuildContext", body, "INVALID_ARGUMENT", "session_id");
        raw_fails(f, "SoftDeleteSession", body, "INVALID_ARGUMENT", "session_id");
        raw_fails(f, "PurgeMessage", body, "INVALID_ARGUMENT", "message_id");
        raw_fails(f, "ListMessages", body, "INVALID_ARGUMENT", "session_id");
    }
}

static void visit_id(Fixture *f, const RequestField *field)
{
    if (!is_id(field) || field->depth != 1) return;
    for (size_t i = 0; i < sizeof(WRONG_IDS) / sizeof(*WRONG_IDS); i++) {
        request_field_send_bytes(f, field, WRONG_IDS[i], strlen(WRONG_IDS[i]));
        CHECK(f->status.code == STATUS_INVALID_ARGUMENT);
    }
    request_field_send_bytes(f, field, UNKNOWN_ID, strlen(UNKNOWN_ID));
    CHECK(!strstr(f->status.message, "is not an id"));
}

TEST(bad_ids_are_refused_in_each_request)
{
    request_fields_visit(visit_id);
}

TEST(bad_unknown_fields_are_dropped_and_never_stored)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *secret = "of-tomorrow";
    Raw *text = raw_begin(f);
    raw_text(text, 1, "hello");
    raw_text(text, 77, secret);
    Raw *part = raw_begin(f);
    raw_message(part, 10, text);
    raw_text(part, 77, secret);
    Raw *usage = raw_begin(f);
    raw_number(usage, 1, 5);
    raw_text(usage, 77, secret);
    Raw *message = raw_begin(f);
    raw_number(message, 6, ROLE_USER);
    raw_message(message, 9, usage);
    raw_message(message, 34, part);
    raw_text(message, 77, secret);
    // The server's own fields of Message, which NewMessage has not.
    raw_text(message, 1, secret);
    raw_number(message, 4, 1000);
    raw_number(message, 18, 1);
    Raw *body = raw_begin(f);
    raw_text(body, 1, session);
    raw_message(body, 2, message);
    raw_text(body, 77, secret);
    raw_ok(f, "AppendMessage", body);
    CHECK(!store_holds(f, secret));
    Message *stored = message_ok(f, newest_ok(f, session));
    CHECK_STR(stored->parts[0]->text->text, "hello");
    CHECK_EQ(stored->usage->input_tokens, 5);
    CHECK_EQ(stored->sequence, 0);
    CHECK_EQ(stored->deleted_at, 0);
    CHECK_EQ(stored->base.n_unknown_fields, 0);
}

TEST(bad_unknown_fields_of_other_records_are_never_stored)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *secret = "of-tomorrow";
    Raw *model = raw_begin(f);
    raw_text(model, 1, "p");
    raw_text(model, 2, "m");
    raw_text(model, 77, secret);
    Raw *created = raw_begin(f);
    raw_text(created, 10, "/project");
    raw_message(created, 11, model);
    raw_text(created, 77, secret);
    Raw *body = raw_begin(f);
    raw_message(body, 1, created);
    raw_ok(f, "CreateSession", body);

    Raw *memory = raw_begin(f);
    raw_text(memory, 6, "fact");
    raw_text(memory, 77, secret);
    body = raw_begin(f);
    raw_text(body, 1, session);
    raw_message(body, 2, memory);
    raw_ok(f, "RememberSessionMemory", body);

    Raw *item = raw_begin(f);
    raw_text(item, 1, "do");
    raw_text(item, 77, secret);
    body = raw_begin(f);
    raw_text(body, 1, session);
    raw_message(body, 2, item);
    raw_ok(f, "ReplaceSessionTodos", body);

    Raw *marker = raw_begin(f);
    raw_number(marker, 2, 1);
    raw_text(marker, 77, secret);
    body = raw_begin(f);
    raw_text(body, 1, session);
    raw_message(body, 2, marker);
    raw_ok(f, "AddCompactionMarker", body);
    CHECK(!store_holds(f, secret));
}

TEST(bad_hosts_of_empty_sub_messages_are_refused)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const size_t count = 100000;
    Raw *result = raw_begin(f);
    for (size_t i = 0; i < count; i++)
        raw_bytes(result, 5, NULL, 0);
    Raw *part = raw_begin(f);
    raw_message(part, 13, result);
    Raw *message = raw_begin(f);
    raw_number(message, 6, ROLE_USER);
    raw_message(message, 34, part);
    Raw *body = raw_begin(f);
    raw_text(body, 1, session);
    raw_message(body, 2, message);
    raw_fails(f, "AppendMessage", body, "TOO_LONG", "attachments");

    Raw *items = raw_begin(f);
    raw_text(items, 1, session);
    for (size_t i = 0; i < count; i++)
        raw_bytes(items, 2, NULL, 0);
    raw_fails(f, "ReplaceSessionTodos", items, "TOO_LONG", "items");
    Raw *parts = raw_begin(f);
    raw_text(parts, 1, session);
    Raw *hollow = raw_begin(f);
    for (size_t i = 0; i < count; i++)
        raw_bytes(hollow, 34, NULL, 0);
    raw_message(parts, 2, hollow);
    raw_fails(f, "AppendMessage", parts, "TOO_LONG", "message.parts");
    CHECK_EQ(newest_sequence(f), 1);
}

// Within all counts, and still a hundred times its size once decoded.
TEST(bad_requests_that_grow_when_decoded_are_refused)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Raw *result = raw_begin(f);
    raw_text(result, 1, "t");
    for (size_t i = 0; i < ATTACHMENT_COUNT_MAX; i++)
        raw_bytes(result, 5, "\x0a\0", 2);
    Raw *part = raw_begin(f);
    raw_message(part, 13, result);
    Raw *message = raw_begin(f);
    raw_number(message, 6, ROLE_USER);
    for (size_t i = 0; i < 1000; i++)
        raw_message(message, 34, part);
    Raw *body = raw_begin(f);
    raw_text(body, 1, session);
    raw_message(body, 2, message);
    raw_fails(f, "AppendMessage", body, "TOO_LONG", "decoded");
    CHECK_EQ(newest_sequence(f), 1);
}

TEST(bad_json_nested_too_deep_is_refused)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    char *json = fixture_alloc(f, 2 * (JSON_DEPTH_MAX + 1) + 1);
    for (size_t depth = JSON_DEPTH_MAX; depth <= JSON_DEPTH_MAX + 1; depth++) {
        memset(json, '[', depth);
        memset(json + depth, ']', depth);
        json[2 * depth] = '\0';
        PublishEventRequest request = {.type = "mine", .data_json = json};
        if (depth == JSON_DEPTH_MAX) {
            CALL_OK(f, publish_event, PublishEvent, request);
        } else {
            CALL_FAILS(f, publish_event, PublishEvent, "INVALID_JSON", request);
        }
    }
}

static void visit_half_full(Fixture *f, const RequestField *field)
{
    // A session_id alone, or any other field alone, is no request that could write anything but an
    // event of its type, a session's new status, or the like: none names an existing record.
    uint64_t before = newest_sequence(f);
    if (field->field->type == PROTOBUF_C_TYPE_STRING) {
        request_field_send_bytes(f, field, UNKNOWN_ID, strlen(UNKNOWN_ID));
    } else if (field->field->type == PROTOBUF_C_TYPE_MESSAGE) {
        request_field_send_bytes(f, field, NULL, 0);
    } else if (field->field->type == PROTOBUF_C_TYPE_BYTES) {
        request_field_send_bytes(f, field, "x", 1);
    } else {
        request_field_send_number(f, field, 1);
    }
    bool is_event = strcmp(field->name, "type") == 0;
    if (f->status.code == STATUS_OK && !is_event) CHECK(!field->method->is_write);
    bool is_kept = is_event && strcmp(field->method->name, "PublishEvent") == 0;
    CHECK_EQ(newest_sequence(f), before + is_kept);
}

TEST(bad_requests_with_one_field_alone_write_nothing)
{
    request_fields_visit(visit_half_full);
}

TEST(bad_requests_that_are_empty_name_what_they_miss)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    static const char *const NOTHING_REQUIRED[] = {"Health", "Describe", "Stats", "ListEvents",
                                                   "ListSessions"};
    for (size_t i = 0; i < METHOD_COUNT; i++) {
        if (METHODS[i].is_stream) continue;
        bool is_required = true;
        for (size_t j = 0; j < sizeof(NOTHING_REQUIRED) / sizeof(*NOTHING_REQUIRED); j++) {
            if (strcmp(METHODS[i].name, NOTHING_REQUIRED[j]) == 0) is_required = false;
        }
        raw_send(f, raw_request(f, METHODS[i].name, NULL, raw_begin(f)));
        raw_expect(f, is_required ? "INVALID_ARGUMENT" : "", is_required ? "required" : "");
    }
    CHECK_EQ(newest_sequence(f), 0);
}
