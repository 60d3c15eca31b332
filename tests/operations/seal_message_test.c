// SealMessage: how an open message ends.

#include "base/limits.h"
#include "open_message.h"

TEST(seal_writes_how_the_message_ended)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = open_ok(f, session, ROLE_ASSISTANT);
    append_part_ok(f, id, text_part(f, "a", "hello"));
    f->now_ms += 50;
    Usage usage = {.input_tokens = 1, .output_tokens = 2, .reasoning_tokens = 3};
    ErrorInfo said = {.code = "overloaded", .message = "try later"};
    Receipt *receipt = seal_ok(f, id,
                               (SealMessageRequest){.status = MESSAGE_STATUS_FAILED,
                                                    .usage = &usage,
                                                    .finish_reason = "error",
                                                    .duration_ms = 40,
                                                    .error = &said});
    CHECK_STR(receipt->id, id);
    CHECK_EQ(receipt->n_part_ids, 0);
    CHECK_EQ(receipt->created_at, f->now_ms - 50);
    Message *message = message_ok(f, id);
    CHECK_EQ(message->status, MESSAGE_STATUS_FAILED);
    CHECK_EQ(message->completed_at, f->now_ms);
    CHECK_EQ(message->duration_ms, 40);
    CHECK_EQ(message->usage->reasoning_tokens, 3);
    CHECK_STR(message->finish_reason, "error");
    CHECK_STR(message->error->code, "overloaded");
    CHECK_STR(message->error->message, "try later");
    CHECK_STR(parts_of(f, id), "a=hello");
    CHECK_EQ(table_rows(f, "parts"), 0);
    check_store_ok(f);
}

TEST(seal_is_complete_unless_said_and_leaves_what_it_does_not_name)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Usage usage = {.input_tokens = 9};
    const char *id = entry_ok(f, session,
                              &(NewMessage){.role = ROLE_ASSISTANT,
                                            .status = MESSAGE_STATUS_OPEN,
                                            .duration_ms = 7,
                                            .finish_reason = "stop",
                                            .usage = &usage})
                         ->id;
    seal_ok(f, id, (SealMessageRequest){.completed_at = 77});
    Message *message = message_ok(f, id);
    CHECK_EQ(message->status, MESSAGE_STATUS_COMPLETE);
    CHECK_EQ(message->completed_at, 77);
    CHECK_EQ(message->duration_ms, 7);
    CHECK_STR(message->finish_reason, "stop");
    CHECK_EQ(message->usage->input_tokens, 9);
    CHECK(message->error == NULL);
}

TEST(seal_moves_the_message_from_the_open_ones_into_the_live_window)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_ok(f, session, ROLE_USER, "u");
    const char *id = open_ok(f, session, ROLE_ASSISTANT);
    append_part_ok(f, id, text_part(f, "a", "answer"));
    ListMessagesRequest open = {.session_id = CHARS(session), .status = MESSAGE_STATUS_OPEN};
    ListMessagesRequest cut = {.session_id = CHARS(session), .status = MESSAGE_STATUS_INTERRUPTED};
    CHECK_STR(window_texts(f, session), "u");
    CHECK_EQ(CALL_OK(f, list_messages, ListMessages, open)->n_messages, 1);
    fixture_reopen(f); // it survives as open
    CHECK_EQ(CALL_OK(f, list_messages, ListMessages, open)->n_messages, 1);
    seal_ok(f, id, (SealMessageRequest){.status = MESSAGE_STATUS_INTERRUPTED});
    CHECK_STR(window_texts(f, session), "u answer");
    CHECK_EQ(CALL_OK(f, list_messages, ListMessages, open)->n_messages, 0);
    CHECK_EQ(CALL_OK(f, list_messages, ListMessages, cut)->n_messages, 1);
}

TEST(seal_usage_replaces_what_the_message_had_and_own_totals_follow)
{
    const char *parent;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&parent);
    const char *session = subagent_ok(f, parent);
    Usage first = {.input_tokens = 10, .output_tokens = 4, .cost_nano_usd = 5, .total_tokens = 14};
    NewMessage message = {.role = ROLE_ASSISTANT, .status = MESSAGE_STATUS_OPEN, .usage = &first};
    const char *id =
        CALL_OK(f, append_message, AppendMessage,
                {.session_id = CHARS(session), .message = &message, .propagate_usage = true})
            ->receipt->id;
    Usage last = {.input_tokens = 30, .cost_nano_usd = 6};
    Receipt *receipt =
        seal_ok(f, id, (SealMessageRequest){.usage = &last, .propagate_usage = true});
    CHECK_EQ(receipt->n_totals, 2);
    CHECK_STR(receipt->totals[0]->session_id, session);
    check_totals(receipt->totals[1]->totals, 30, 0, 0, 0, 6);
    check_totals(get_ok(f, session)->own_totals, 30, 0, 0, 0, 6);
    check_totals(get_ok(f, session)->totals, 30, 0, 0, 0, 6);
    check_totals(get_ok(f, parent)->totals, 30, 0, 0, 0, 6);
    Usage *got = message_ok(f, id)->usage;
    CHECK_EQ(got->input_tokens, 30);
    CHECK_EQ(got->output_tokens, 0);
    CHECK_EQ(got->total_tokens, 0);
    ListEventsResponse *list =
        CALL_OK(f, list_events, ListEvents, {.after_sequence = newest_sequence(f) - 1, .limit = 1});
    CHECK_STR(list->events[0]->type, "message.sealed");
    CHECK_EQ(list->events[0]->n_totals, 2);
    check_store_ok(f);
    message_delete_ok(f, id);
    check_totals(get_ok(f, session)->own_totals, 0, 0, 0, 0, 0);
    check_totals(get_ok(f, parent)->totals, 30, 0, 0, 0, 6); // money spent is spent
    check_store_ok(f);
}

TEST(seal_usage_without_propagation_moves_own_totals_alone)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = open_ok(f, session, ROLE_ASSISTANT);
    CHECK_EQ(seal_ok(f, id, (SealMessageRequest){.usage = &(Usage){.output_tokens = 3}})->n_totals,
             0);
    check_totals(get_ok(f, session)->own_totals, 0, 3, 0, 0, 0);
    check_totals(get_ok(f, session)->totals, 0, 0, 0, 0, 0);
}

TEST(seal_stays_when_the_message_is_deleted_and_purged)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = open_ok(f, session, ROLE_ASSISTANT);
    append_part_ok(f, id, text_part(f, "a", filled(f, 's', 3 * VALUE_BYTES_MAX)));
    append_part_ok(f, id, tool_part(f, "b", "secret", TOOL_STATE_ERROR));
    ErrorInfo said = {.message = "a secret"};
    Usage usage = {.output_tokens = 3};
    seal_ok(f, id,
            (SealMessageRequest){.status = MESSAGE_STATUS_FAILED,
                                 .finish_reason = "length",
                                 .usage = &usage,
                                 .error = &said});
    message_delete_ok(f, id);
    check_store_ok(f);
    message_purge_ok(f, id);
    CHECK(!store_holds(f, "secret"));
    Message *message = message_ok(f, id);
    CHECK_EQ(message->n_parts, 0);
    CHECK(message->error == NULL);
    CHECK_EQ(message->status, MESSAGE_STATUS_FAILED);
    CHECK_STR(message->finish_reason, "length");
    CHECK_EQ(message->usage->output_tokens, 3);
    CHECK(message->completed_at != 0 && message->deleted_at != 0);
    check_store_ok(f);
}

TEST(seal_of_what_is_not_open_is_refused)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *complete = append_ok(f, session, ROLE_ASSISTANT, "m");
    const char *open = open_ok(f, session, ROLE_ASSISTANT);
    const char *deleted = open_ok(f, session, ROLE_ASSISTANT);
    message_delete_ok(f, deleted);
    seal_fails(f, complete, (SealMessageRequest){.status = 0}, "MESSAGE_SEALED");
    seal_fails(f, deleted, (SealMessageRequest){.status = 0}, "MESSAGE_SEALED");
    seal_fails(f, UNKNOWN_ID, (SealMessageRequest){.status = 0}, "MESSAGE_NOT_FOUND");
    seal_fails(f, "", (SealMessageRequest){.status = 0}, "INVALID_ARGUMENT");
    seal_fails(f, open, (SealMessageRequest){.status = MESSAGE_STATUS_OPEN}, "INVALID_ARGUMENT");
    CHECK(strstr(f->status.message, "status"));
    archive_ok(f, session, true);
    seal_fails(f, open, (SealMessageRequest){.status = 0}, "SESSION_ARCHIVED");
    archive_ok(f, session, false);
    delete_ok(f, session);
    seal_fails(f, open, (SealMessageRequest){.status = 0}, "SESSION_DELETED");
    restore_ok(f, session);
    seal_ok(f, open, (SealMessageRequest){.status = 0});
    seal_fails(f, open, (SealMessageRequest){.status = 0}, "MESSAGE_SEALED");
    append_part_fails(f, open, text_part(f, "a", "x"), "MESSAGE_SEALED");
}

TEST(seal_error_that_does_not_fit_is_refused)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    size_t size = MESSAGE_BYTES_MAX - 2 * MESSAGE_PREFIX_BYTES_MAX;
    NewMessage *message = text_message(f, ROLE_ASSISTANT, filled(f, 'x', size));
    message->status = MESSAGE_STATUS_OPEN;
    const char *id = entry_ok(f, session, message)->id;
    ErrorInfo said = {.message = filled(f, 'm', 4096)};
    seal_fails(f, id, (SealMessageRequest){.error = &said}, "TOO_LONG");
    CHECK(strstr(f->status.message, "error"));
    append_part_fails(f, id, text_part(f, "b", "x"), "TOO_LONG");
    seal_ok(f, id, (SealMessageRequest){.finish_reason = filled(f, 'f', STRING_BYTES_MAX)});
    CHECK_EQ(strlen(message_ok(f, id)->parts[0]->text->text), size);
    check_store_ok(f);
}

TEST(seal_replays_return_the_first_receipt)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = open_ok(f, session, ROLE_ASSISTANT);
    SealMessageRequest request = {.message_id = CHARS(id), .usage = &(Usage){.output_tokens = 3}};
    for (int i = 0; i < 2; i++) {
        CHECK_STR(CALL_OK_WITH(f, "op", seal_message, SealMessage, request)->receipt->id, id);
    }
    check_totals(get_ok(f, session)->own_totals, 0, 3, 0, 0, 0);
    request.finish_reason = "stop";
    CALL_FAILS_WITH(f, "op", seal_message, SealMessage, "OPERATION_ID_REUSED", request);
}
