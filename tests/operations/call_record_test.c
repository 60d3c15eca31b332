// Calls: the ledger of requests to models' providers.

#include <stdlib.h>

#include "base/limits.h"
#include "entries.h"

static NewCall new_call(ModelRef *model, Usage *usage)
{
    *model = (ModelRef){.provider = "anthropic", .name = "claude-sonnet-4"};
    *usage = (Usage){.input_tokens = 10, .output_tokens = 5, .cost_nano_usd = 1234000};
    return (NewCall){.resolved = model, .usage = usage};
}

static CallReceipt *record_ok(Fixture *f, const char *session, NewCall *call)
{
    return CALL_OK(f, record_call, RecordCall, {.session_id = CHARS(session), .call = call})
        ->receipt;
}

// A call whose request_id is `request_id`.
static const char *plain_call_ok(Fixture *f, const char *session, const char *request_id)
{
    ModelRef model;
    Usage usage;
    NewCall call = new_call(&model, &usage);
    call.request_id = CHARS(request_id);
    return record_ok(f, session, &call)->id;
}

static ListCallsResponse *calls_of(Fixture *f, const char *session)
{
    return CALL_OK(f, list_calls, ListCalls, {.session_id = CHARS(session)});
}

// The request ids of all pages, joined: each has one character.
static const char *listed(Fixture *f, ListCallsRequest request)
{
    char *joined = fixture_alloc(f, 64);
    do {
        ListCallsResponse *page = CALL_OK(f, list_calls, ListCalls, request);
        for (size_t i = 0; i < page->n_calls; i++)
            strncat(joined, page->calls[i]->request_id, 1);
        request.cursor = page->next_cursor;
    } while (*request.cursor);
    return joined;
}

TEST(call_comes_back_with_every_field)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    ModelRef requested = {.provider = "router", .name = "auto"};
    ModelRef resolved = {.provider = "anthropic", .name = "claude-sonnet-4"};
    Usage usage = {
        .input_tokens = 1,
        .output_tokens = 2,
        .cost_nano_usd = 1234000,
        .reasoning_tokens = 5,
        .total_tokens = 15,
    };
    ErrorInfo failure = {.code = "overloaded", .message = "later"};
    External external = {.source = "hecate", .id = "call_1"};
    NewCall call = {
        .request_id = "req-1",
        .requested = &requested,
        .resolved = &resolved,
        .provider_kind = "cloud",
        .usage = &usage,
        .created_at = 1600000000000,
        .duration_ms = 7,
        .finish_reason = "stop",
        .error = &failure,
        .external = &external,
        .data_json = "{\"a\":1}",
    };
    CallReceipt *receipt = record_ok(f, session, &call);
    CHECK_EQ(strlen(receipt->id), 26);
    CHECK_STR(receipt->session_id, session);
    CHECK_EQ(receipt->created_at, 1600000000000);
    CHECK_EQ(receipt->n_totals, 0);
    ListCallsResponse *page = calls_of(f, session);
    CHECK_EQ(page->n_calls, 1);
    CallRecord *got = page->calls[0];
    CHECK_STR(got->id, receipt->id);
    CHECK_STR(got->session_id, session);
    CHECK_STR(got->request_id, "req-1");
    CHECK_STR(got->requested->provider, "router");
    CHECK_STR(got->resolved->name, "claude-sonnet-4");
    CHECK_STR(got->provider_kind, "cloud");
    CHECK_EQ(got->usage->cost_nano_usd, 1234000);
    CHECK_EQ(got->usage->reasoning_tokens, 5);
    CHECK_EQ(got->usage->total_tokens, 15);
    CHECK_EQ(got->created_at, 1600000000000);
    CHECK_EQ(got->duration_ms, 7);
    CHECK_STR(got->finish_reason, "stop");
    CHECK_STR(got->error->code, "overloaded");
    CHECK_STR(got->external->id, "call_1");
    CHECK_STR(got->data_json, "{\"a\":1}");
}

TEST(call_moves_count_and_last_call_of_the_session_and_nothing_else)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_ok(f, session, ROLE_USER, "m1");
    Session *before = get_ok(f, session);
    CHECK(before->last_call == NULL);
    plain_call_ok(f, session, "1");
    f->now_ms += 1000;
    const char *second = plain_call_ok(f, session, "2");
    Session *after = get_ok(f, session);
    CHECK_EQ(after->call_count, 2);
    CHECK_STR(after->last_call->id, second);
    CHECK_STR(after->last_call->request_id, "2");
    CHECK_STR(after->last_call->model->provider, "anthropic");
    CHECK_STR(after->last_call->model->name, "claude-sonnet-4");
    CHECK_EQ(after->last_call->cost_nano_usd, 1234000);
    CHECK_EQ(after->last_call->created_at, f->now_ms);
    CHECK_EQ(after->message_count, 1);
    CHECK_EQ(after->updated_at, before->updated_at);
    CHECK_EQ(after->last_active_at, before->last_active_at);
    check_totals(after->own_totals, 0, 0, 0, 0, 0);
    check_totals(after->totals, 0, 0, 0, 0, 0);
}

TEST(call_without_a_resolved_model_shows_the_requested_one)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    ModelRef requested = {.provider = "p", .name = "m"};
    record_ok(f, session, &(NewCall){.requested = &requested});
    Session *head = get_ok(f, session);
    CHECK_STR(head->last_call->model->name, "m");
    CHECK_EQ(head->last_call->cost_nano_usd, 0);
    CHECK_EQ(head->last_call->created_at, f->now_ms);
    CHECK(calls_of(f, session)->calls[0]->usage == NULL);
}

TEST(call_usage_is_propagated_when_asked)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *agent = subagent_ok(f, session);
    ModelRef model;
    Usage usage;
    NewCall call = new_call(&model, &usage);
    CallReceipt *receipt =
        CALL_OK(f, record_call, RecordCall,
                {.session_id = CHARS(agent), .call = &call, .propagate_usage = true})
            ->receipt;
    CHECK_EQ(receipt->n_totals, 2);
    CHECK_STR(receipt->totals[0]->session_id, agent);
    check_totals(receipt->totals[1]->totals, 10, 5, 0, 0, 1234000);
    check_totals(get_ok(f, session)->totals, 10, 5, 0, 0, 1234000);
    check_totals(get_ok(f, agent)->totals, 10, 5, 0, 0, 1234000);
    check_totals(get_ok(f, agent)->own_totals, 0, 0, 0, 0, 0);
    CHECK_EQ(get_ok(f, session)->call_count, 0);
    ListEventsResponse *events = CALL_OK(f, list_events, ListEvents, {.session_id = CHARS(agent)});
    Event *event = events->events[events->n_events - 1];
    CHECK_STR(event->type, "call.recorded");
    CHECK_STR(event->record_id, receipt->id);
    CHECK_EQ(event->n_totals, 2);
}

TEST(call_names_a_model_with_both_names)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    ModelRef half = {.provider = "p"};
    ModelRef whole = {.provider = "p", .name = "m"};
    External no_id = {.source = "hecate"};
    NewCall wrong[] = {
        {.request_id = "r"},
        {.requested = &half},
        {.requested = &whole, .resolved = &half},
        {.requested = &whole, .external = &no_id},
    };
    const char *named[] = {"call.requested", "call.requested", "call.resolved", "call.external"};
    for (size_t i = 0; i < 4; i++) {
        CALL_FAILS(f, record_call, RecordCall, "INVALID_ARGUMENT",
                   {.session_id = CHARS(session), .call = &wrong[i]});
        CHECK(strstr(f->status.message, named[i]));
    }
    CALL_FAILS(f, record_call, RecordCall, "INVALID_ARGUMENT", {.session_id = CHARS(session)});
    CHECK_EQ(get_ok(f, session)->call_count, 0);
}

TEST(call_calls_name_sessions_that_are_missing)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    ModelRef model;
    Usage usage;
    NewCall call = new_call(&model, &usage);
    CALL_FAILS(f, record_call, RecordCall, "SESSION_NOT_FOUND",
               {.session_id = UNKNOWN_ID, .call = &call});
    CALL_FAILS(f, list_calls, ListCalls, "SESSION_NOT_FOUND", {.session_id = UNKNOWN_ID});
    CALL_FAILS(f, delete_call, DeleteCall, "SESSION_NOT_FOUND",
               {.session_id = UNKNOWN_ID, .call_id = UNKNOWN_ID});
    CALL_FAILS(f, delete_call, DeleteCall, "INVALID_ARGUMENT", {.session_id = CHARS(session)});
    CHECK(strstr(f->status.message, "call_id"));
}

TEST(call_is_recorded_and_deleted_on_deleted_and_archived_sessions)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *deleted = session_ok(f), *archived = session_ok(f);
    delete_ok(f, deleted);
    archive_ok(f, archived, true);
    const char *sessions[] = {deleted, archived};
    for (size_t i = 0; i < 2; i++) {
        const char *id = plain_call_ok(f, sessions[i], "1");
        CHECK_EQ(get_ok(f, sessions[i])->call_count, 1);
        CHECK_STR(listed(f, (ListCallsRequest){.session_id = CHARS(sessions[i])}), "1");
        CALL_OK(f, delete_call, DeleteCall,
                {.session_id = CHARS(sessions[i]), .call_id = CHARS(id)});
        CHECK_EQ(get_ok(f, sessions[i])->call_count, 0);
    }
}

TEST(call_external_is_unique_per_source_over_the_store)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *first = session_ok(f), *second = session_ok(f);
    External external = {.source = "hecate", .id = "call_1"};
    ModelRef model;
    Usage usage;
    NewCall call = new_call(&model, &usage);
    call.external = &external;
    const char *id = record_ok(f, first, &call)->id;
    const char *sessions[] = {first, second};
    for (size_t i = 0; i < 2; i++) {
        CALL_FAILS(f, record_call, RecordCall, "EXTERNAL_TAKEN",
                   {.session_id = CHARS(sessions[i]), .call = &call});
        CHECK(strstr(f->status.message, id));
        CHECK(strstr(f->status.message, first));
    }
    external.source = "other";
    record_ok(f, second, &call);
    external.source = "hecate";
    CALL_OK(f, delete_call, DeleteCall, {.session_id = CHARS(first), .call_id = CHARS(id)});
    record_ok(f, second, &call); // free again
    purge_ok(f, second, false);
    record_ok(f, first, &call); // and at once when its session is purged
    purges_settle(f);
    CALL_FAILS(f, record_call, RecordCall, "EXTERNAL_TAKEN",
               {.session_id = CHARS(first), .call = &call});
    CHECK_EQ(table_rows(f, "calls"), 1);
    purge_ok(f, first, false);
    purges_settle(f);
    CHECK_EQ(table_rows(f, "calls"), 0);
    CHECK_EQ(table_rows(f, "session_index"), 0);
}

TEST(call_that_is_deleted_leaves_its_messages_whose_call_id_reads_as_none)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *call = plain_call_ok(f, session, "1");
    const char *kept = plain_call_ok(f, session, "2");
    NewMessage *message = text_message(f, ROLE_ASSISTANT, "answer");
    message->call_id = CHARS(call);
    const char *m1 = entry_ok(f, session, message)->id;
    message = text_message(f, ROLE_ASSISTANT, filled(f, 'x', 20000));
    message->call_id = CHARS(call);
    const char *m2 = entry_ok(f, session, message)->id;
    message = text_message(f, ROLE_ASSISTANT, "other");
    message->call_id = CHARS(kept);
    const char *m3 = entry_ok(f, session, message)->id;
    message = text_message(f, ROLE_ASSISTANT, "foreign");
    message->call_id = "chat_1";
    entry_ok(f, session, message);
    CHECK_STR(message_ok(f, m1)->call_id, call);
    CHECK_STR(message_ok(f, m2)->call_id, call);
    CALL_OK(f, delete_call, DeleteCall, {.session_id = CHARS(session), .call_id = CHARS(call)});
    CHECK_STR(message_ok(f, m1)->call_id, "");
    CHECK_STR(message_ok(f, m2)->call_id, "");
    CHECK_STR(message_ok(f, m3)->call_id, kept);
    CHECK_EQ(message_ok(f, m2)->n_parts, 1);
    MessagesForSessionResponse *history =
        CALL_OK(f, messages_for_session, MessagesForSession, {.session_id = CHARS(session)});
    const char *wanted[] = {"", "", kept, "chat_1"};
    CHECK_EQ(history->n_messages, 4);
    for (size_t i = 0; i < 4; i++)
        CHECK_STR(history->messages[i]->call_id, wanted[i]);
    CHECK_STR(history->messages[1]->parts[0]->text->text, filled(f, 'x', 20000));
    ListMessagesResponse *log =
        CALL_OK(f, list_messages, ListMessages, {.session_id = CHARS(session)});
    for (size_t i = 0; i < 4; i++)
        CHECK_STR(log->messages[i]->call_id, wanted[i]);
    CHECK_EQ(get_ok(f, session)->message_count, 4);
}

TEST(call_deletion_gives_last_call_to_the_newest_that_is_left)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *ids[3], *names[] = {"1", "2", "3"};
    for (size_t i = 0; i < 3; i++)
        ids[i] = plain_call_ok(f, session, names[i]);
    DeleteCallRequest request = {.session_id = CHARS(session), .call_id = CHARS(ids[1])};
    CHECK_STR(CALL_OK(f, delete_call, DeleteCall, request)->receipt->id, ids[1]);
    CHECK_STR(get_ok(f, session)->last_call->id, ids[2]);
    CALL_FAILS(f, delete_call, DeleteCall, "CALL_NOT_FOUND", request);
    CHECK_EQ(f->status.code, STATUS_NOT_FOUND);
    request.call_id = CHARS(ids[2]);
    CALL_OK(f, delete_call, DeleteCall, request);
    CHECK_STR(get_ok(f, session)->last_call->id, ids[0]);
    CHECK_EQ(get_ok(f, session)->call_count, 1);
    request.session_id = CHARS(session_ok(f));
    request.call_id = CHARS(ids[0]);
    CALL_FAILS(f, delete_call, DeleteCall, "CALL_NOT_FOUND", request); // another session's
    request.session_id = CHARS(session);
    CALL_OK(f, delete_call, DeleteCall, request);
    CHECK(get_ok(f, session)->last_call == NULL);
    CHECK_EQ(get_ok(f, session)->call_count, 0);
    ListEventsResponse *events =
        CALL_OK(f, list_events, ListEvents, {.session_id = CHARS(session)});
    CHECK_STR(events->events[events->n_events - 1]->type, "call.deleted");
    CHECK_STR(events->events[events->n_events - 1]->record_id, ids[0]);
}

TEST(call_listing_pages_filters_by_time_and_goes_either_way)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *names[] = {"a", "b", "c", "d", "e"};
    for (size_t i = 0; i < 5; i++) {
        ModelRef model;
        Usage usage;
        NewCall call = new_call(&model, &usage);
        call.request_id = CHARS(names[i]);
        call.created_at = 1000 + (int64_t)i;
        if (i % 2) call.data_json = json_of_size(9000); // of several chunks
        record_ok(f, session, &call);
        if (i % 2) free(call.data_json);
    }
    char *s = CHARS(session);
    CHECK_STR(listed(f, (ListCallsRequest){.session_id = s}), "abcde");
    CHECK_STR(listed(f, (ListCallsRequest){.session_id = s, .limit = 2}), "abcde");
    CHECK_STR(listed(f, (ListCallsRequest){.session_id = s, .page_bytes = 1}), "abcde");
    CHECK_STR(listed(f, (ListCallsRequest){.session_id = s, .newest_first = true}), "edcba");
    CHECK_STR(listed(f, (ListCallsRequest){.session_id = s, .newest_first = true, .limit = 1}),
              "edcba");
    CHECK_STR(listed(f, (ListCallsRequest){.session_id = s, .created_since = 1002}), "cde");
    CHECK_STR(listed(f, (ListCallsRequest){.session_id = s, .created_until = 1002}), "ab");
    CHECK_STR(listed(f, (ListCallsRequest){.session_id = s, .limit = 3}), "abcde");
    CALL_FAILS(f, list_calls, ListCalls, "INVALID_ARGUMENT", {.session_id = s, .cursor = "x"});
    CALL_FAILS(f, list_calls, ListCalls, "INVALID_ARGUMENT",
               {.session_id = s, .limit = LIST_LIMIT_MAX + 1});
    CALL_FAILS(f, list_calls, ListCalls, "INVALID_ARGUMENT",
               {.session_id = s, .created_since = -1});
}

TEST(call_data_is_limited)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    ModelRef model;
    Usage usage;
    NewCall call = new_call(&model, &usage);
    call.data_json = json_of_size(SESSION_DATA_JSON_BYTES_MAX + 1);
    CALL_FAILS(f, record_call, RecordCall, "TOO_LONG",
               {.session_id = CHARS(session), .call = &call});
    CHECK(strstr(f->status.message, "call.data_json"));
    free(call.data_json);
    call.data_json = json_of_size(SESSION_DATA_JSON_BYTES_MAX);
    record_ok(f, session, &call);
    ListCallsResponse *page =
        CALL_OK(f, list_calls, ListCalls, {.session_id = CHARS(session), .page_bytes = 1 << 22});
    CHECK_STR(page->calls[0]->data_json, call.data_json);
    free(call.data_json);
}

TEST(call_writes_sent_again_are_done_once)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    ModelRef model;
    Usage usage;
    NewCall call = new_call(&model, &usage);
    RecordCallRequest request = {.session_id = CHARS(session), .call = &call};
    const char *first = CALL_OK_WITH(f, "op", record_call, RecordCall, request)->receipt->id;
    CHECK_STR(CALL_OK_WITH(f, "op", record_call, RecordCall, request)->receipt->id, first);
    CHECK_EQ(get_ok(f, session)->call_count, 1);
    call.request_id = "another";
    CALL_FAILS_WITH(f, "op", record_call, RecordCall, "OPERATION_ID_REUSED", request);
    DeleteCallRequest deletes = {.session_id = CHARS(session), .call_id = CHARS(first)};
    for (int i = 0; i < 2; i++) {
        CHECK_STR(CALL_OK_WITH(f, "del", delete_call, DeleteCall, deletes)->receipt->id, first);
    }
}

TEST(call_event_types_are_the_servers)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *wrong[] = {"call.recorded", "call.deleted"};
    for (size_t i = 0; i < 2; i++) {
        CALL_FAILS(f, publish_event, PublishEvent, "INVALID_ARGUMENT", {.type = CHARS(wrong[i])});
    }
}
