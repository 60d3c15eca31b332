// MessagesForSession and MessagesDirectForSession: pages of a history.

#include "base/limits.h"
#include "entries.h"
#include "raw.h"

static MessagesForSessionResponse *history(Fixture *f, MessagesForSessionRequest request)
{
    return CALL_OK(f, messages_for_session, MessagesForSession, request);
}

static const char *joined(Fixture *f, Message **messages, size_t count)
{
    char *text = fixture_alloc(f, 64 * (count + 1));
    for (size_t i = 0; i < count; i++) {
        if (i) strncat(text, " ", 2);
        strncat(text, messages[i]->n_parts ? messages[i]->parts[0]->text->text : "-", 60);
    }
    return text;
}

// All pages' first texts, with "|" between pages.
static const char *paged(Fixture *f, MessagesForSessionRequest request)
{
    char *text = fixture_alloc(f, 4096);
    for (;;) {
        MessagesForSessionResponse *page = history(f, request);
        strncat(text, joined(f, page->messages, page->n_messages), 1000);
        if (!*page->next_cursor) return text;
        strncat(text, "|", 2);
        request.cursor = page->next_cursor;
    }
}

static void append_many(Fixture *f, const char *session, const char *names)
{
    for (; *names; names++) {
        char name[2] = {*names, '\0'};
        append_ok(f, session, ROLE_USER, name);
    }
}

TEST(history_of_an_empty_session_is_empty)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    MessagesForSessionResponse *page =
        history(f, (MessagesForSessionRequest){.session_id = CHARS(session)});
    CHECK_EQ(page->n_messages, 0);
    CHECK_STR(page->next_cursor, "");
    CHECK_STR(direct_texts(f, session), "");
    CHECK_STR(window_texts(f, session), "");
}

TEST(history_shows_conversation_and_injected_unless_asked)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_ok(f, session, ROLE_USER, "turn");
    NewMessage *injected = text_message(f, ROLE_SYSTEM, "injected");
    injected->kind = MESSAGE_KIND_INJECTED;
    entry_ok(f, session, injected);
    const char *setting = setting_ok(f, session, "model", "x");
    NewMessage *summary = text_message(f, ROLE_SYSTEM, "summary");
    summary->kind = MESSAGE_KIND_BRANCH_SUMMARY;
    entry_ok(f, session, summary);
    marker_ok(f, session, NULL, "s");
    CHECK_STR(history_texts(f, session), "turn injected");
    CHECK_STR(direct_texts(f, session), "turn injected");
    CHECK_STR(window_texts(f, session), "turn injected");
    MessageKind kinds[] = {MESSAGE_KIND_SETTING, MESSAGE_KIND_BRANCH_SUMMARY};
    MessagesForSessionResponse *page = history(
        f, (MessagesForSessionRequest){.session_id = CHARS(session), .n_kinds = 2, .kinds = kinds});
    CHECK_EQ(page->n_messages, 2);
    CHECK_STR(page->messages[0]->id, setting);
    MessageKind wrong[] = {MESSAGE_KIND_UNSPECIFIED};
    CALL_FAILS(f, messages_for_session, MessagesForSession, "INVALID_ARGUMENT",
               {.session_id = CHARS(session), .n_kinds = 1, .kinds = wrong});
    CHECK(strstr(f->status.message, "kinds"));
}

TEST(history_pages_by_limit_in_both_orders)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_many(f, session, "abcdefg");
    MessagesForSessionRequest request = {.session_id = CHARS(session), .limit = 3};
    CHECK_STR(paged(f, request), "a b c|d e f|g");
    request.newest_first = true;
    CHECK_STR(paged(f, request), "g f e|d c b|a");
    request.limit = 7;
    CHECK_STR(paged(f, request), "g f e d c b a");
    request.limit = 1;
    request.newest_first = false;
    CHECK_STR(paged(f, request), "a|b|c|d|e|f|g");
}

TEST(history_pages_across_forks_and_rewinds_in_both_orders)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    append_many(f, root, "ab");
    const char *c = append_ok(f, root, ROLE_USER, "c");
    append_many(f, root, "xx");
    const char *fork = fork_ok(f, root, c);
    const char *d = append_ok(f, fork, ROLE_USER, "d");
    append_many(f, fork, "yy");
    append_after_ok(f, fork, d, "e");
    const char *last = fork_ok(f, fork, NULL);
    append_many(f, last, "fg");
    for (uint32_t limit = 1; limit <= 8; limit++) {
        MessagesForSessionRequest request = {.session_id = CHARS(last), .limit = limit};
        const char *oldest_first = paged(f, request);
        request.newest_first = true;
        const char *newest_first = paged(f, request);
        char plain[2][32] = {"", ""};
        for (const char *c1 = oldest_first; *c1; c1++) {
            if (*c1 != '|' && *c1 != ' ') strncat(plain[0], (char[]){*c1, '\0'}, 2);
        }
        for (const char *c1 = newest_first; *c1; c1++) {
            if (*c1 != '|' && *c1 != ' ') strncat(plain[1], (char[]){*c1, '\0'}, 2);
        }
        CHECK_STR(plain[0], "abcdefg");
        CHECK_STR(plain[1], "gfedcba");
    }
    CHECK_STR(direct_texts(f, last), "f g");
    CHECK_STR(direct_texts(f, fork), "d e");
}

TEST(history_shows_inherited_entries_with_the_ids_of_their_owner)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *m1 = append_ok(f, root, ROLE_USER, "m1");
    const char *fork = fork_ok(f, root, m1);
    const char *f1 = append_ok(f, fork, ROLE_USER, "f1");
    MessagesForSessionResponse *page =
        history(f, (MessagesForSessionRequest){.session_id = CHARS(fork)});
    CHECK_STR(page->messages[0]->id, m1);
    CHECK_STR(page->messages[0]->session_id, root);
    CHECK_STR(page->messages[1]->id, f1);
    CHECK_STR(page->messages[1]->session_id, fork);
    CHECK_STR(page->messages[1]->parent_id, m1);
    CHECK_EQ(page->messages[1]->sequence, 0);
}

TEST(history_cursor_pins_the_history_over_a_rewind_and_an_append)
{
    for (int newest_first = 0; newest_first <= 1; newest_first++) {
        CLEANUP(fixture_close) Fixture *f = fixture_open();
        const char *session = session_ok(f);
        const char *a = append_ok(f, session, ROLE_USER, "a");
        append_many(f, session, "bcd");
        MessagesForSessionRequest request = {
            .session_id = CHARS(session), .limit = 2, .newest_first = newest_first};
        MessagesForSessionResponse *page = history(f, request);
        CHECK_STR(joined(f, page->messages, 2), newest_first ? "d c" : "a b");
        rewind_ok(f, session, a);
        append_many(f, session, "xy");
        request.cursor = page->next_cursor;
        CHECK_STR(paged(f, request), newest_first ? "b a" : "c d");
        CHECK_STR(history_texts(f, session), "a x y");
        fixture_reopen(f);
        CHECK_STR(paged(f, request), newest_first ? "b a" : "c d");
    }
}

TEST(history_cursor_pins_the_history_over_a_clear)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_many(f, session, "abcd");
    MessagesForSessionRequest request = {.session_id = CHARS(session), .limit = 1};
    request.cursor = history(f, request)->next_cursor;
    rewind_ok(f, session, "");
    request.limit = 0;
    CHECK_STR(paged(f, request), "b c d");
    CHECK_STR(history_texts(f, session), "");
}

TEST(history_leaves_deleted_entries_out_of_later_pages)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_many(f, session, "ab");
    const char *c = append_ok(f, session, ROLE_USER, "c");
    append_many(f, session, "d");
    MessagesForSessionRequest request = {.session_id = CHARS(session), .limit = 2};
    request.cursor = history(f, request)->next_cursor;
    message_delete_ok(f, c);
    CHECK_STR(paged(f, request), "d");
}

TEST(history_pages_by_bytes_and_bounds_the_whole_reply)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const size_t count = 40;
    for (size_t i = 0; i < count; i++)
        append_ok(f, session, ROLE_USER, filled(f, 'x', 700));
    for (uint32_t page_bytes = 2048; page_bytes <= 20000; page_bytes += 997) {
        size_t seen = 0;
        MessagesForSessionRequest request = {.session_id = CHARS(session),
                                             .page_bytes = page_bytes};
        do {
            Raw *body = raw_of(f, &messages_for_session_request__descriptor, &request.base);
            Slice reply = raw_ok(f, "MessagesForSession", body);
            CHECK(reply.size + 16 <= page_bytes);
            MessagesForSessionResponse *page = history(f, request);
            CHECK(page->n_messages > 0);
            seen += page->n_messages;
            request.cursor = page->next_cursor;
        } while (*request.cursor);
        CHECK_EQ(seen, count);
    }
}

TEST(history_page_holds_one_record_however_large)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_many(f, session, "a");
    append_ok(f, session, ROLE_USER, filled(f, 'L', PAGE_BYTES_DEFAULT));
    append_many(f, session, "b");
    MessagesForSessionRequest request = {.session_id = CHARS(session)};
    for (int newest_first = 0; newest_first <= 1; newest_first++) {
        request.newest_first = newest_first;
        request.cursor = "";
        for (size_t pages = 0; pages < 3; pages++) {
            MessagesForSessionResponse *page = history(f, request);
            CHECK_EQ(page->n_messages, 1);
            request.cursor = page->next_cursor;
            CHECK_EQ(*request.cursor != '\0', pages < 2);
        }
    }
    request.page_bytes = PAGE_BYTES_MAX;
    CHECK_EQ(history(f, request)->n_messages, 3);
    request.page_bytes = 1;
    CHECK_EQ(history(f, request)->n_messages, 1);
}

TEST(history_refuses_limits_and_pages_over_the_maximum)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    MessagesForSessionRequest request = {.session_id = CHARS(session), .limit = LIST_LIMIT_MAX};
    history(f, request);
    request.limit++;
    CALL_FAILS(f, messages_for_session, MessagesForSession, "INVALID_ARGUMENT", request);
    CHECK(strstr(f->status.message, "limit"));
    request.limit = 0;
    request.page_bytes = PAGE_BYTES_MAX + 1;
    CALL_FAILS(f, messages_for_session, MessagesForSession, "INVALID_ARGUMENT", request);
    CHECK(strstr(f->status.message, "page_bytes"));
}

TEST(history_scans_a_bounded_number_of_records_a_page)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const size_t count = SCANNED_RECORDS_MAX + 5;
    for (size_t i = 0; i < count; i++) {
        entry_ok(f, session, &(NewMessage){.kind = MESSAGE_KIND_CUSTOM, .subtype = "x"});
    }
    append_many(f, session, "a");
    MessagesForSessionRequest request = {.session_id = CHARS(session)};
    MessagesForSessionResponse *page = history(f, request);
    CHECK_EQ(page->n_messages, 0);
    CHECK(*page->next_cursor);
    request.cursor = page->next_cursor;
    CHECK_STR(paged(f, request), "a");
}

TEST(history_refuses_a_cursor_that_is_not_its_own)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_many(f, session, "abc");
    MessagesForSessionRequest request = {.session_id = CHARS(session), .limit = 1};
    char *cursor = history(f, request)->next_cursor;
    CALL_FAILS(f, messages_direct_for_session, MessagesDirectForSession, "INVALID_ARGUMENT",
               {.session_id = CHARS(session), .cursor = cursor});
    CHECK(strstr(f->status.message, "cursor"));
    const char *other = session_ok(f);
    CALL_FAILS(f, messages_for_session, MessagesForSession, "INVALID_ARGUMENT",
               {.session_id = CHARS(other), .cursor = cursor});
    CALL_FAILS(f, messages_for_session, MessagesForSession, "INVALID_ARGUMENT",
               {.session_id = CHARS(session), .cursor = cursor, .newest_first = true});
    MessageKind kinds[] = {MESSAGE_KIND_CUSTOM};
    CALL_FAILS(f, messages_for_session, MessagesForSession, "INVALID_ARGUMENT",
               {.session_id = CHARS(session), .cursor = cursor, .n_kinds = 1, .kinds = kinds});
    cursor[4] = cursor[4] == 'a' ? 'b' : 'a';
    request.cursor = cursor;
    CALL_FAILS(f, messages_for_session, MessagesForSession, "INVALID_ARGUMENT", request);
    request.cursor = "nonsense";
    CALL_FAILS(f, messages_for_session, MessagesForSession, "INVALID_ARGUMENT", request);
    CHECK(strstr(f->status.message, "cursor"));
}

TEST(history_names_missing_sessions_and_reads_deleted_ones)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_many(f, session, "ab");
    char *unknown = UNKNOWN_ID;
    CALL_FAILS(f, messages_for_session, MessagesForSession, "SESSION_NOT_FOUND",
               {.session_id = unknown});
    CALL_FAILS(f, messages_direct_for_session, MessagesDirectForSession, "SESSION_NOT_FOUND",
               {.session_id = unknown});
    CALL_FAILS(f, messages_since_latest_marker, MessagesSinceLatestMarker, "SESSION_NOT_FOUND",
               {.session_id = unknown});
    CALL_FAILS(f, messages_for_session, MessagesForSession, "INVALID_ARGUMENT", {.session_id = ""});
    CALL_FAILS(f, messages_since_latest_marker, MessagesSinceLatestMarker, "INVALID_ARGUMENT",
               {.session_id = ""});
    delete_ok(f, session);
    CHECK_STR(history_texts(f, session), "a b");
    purge_ok(f, session, /* keep_for_forks= */ false);
    CALL_FAILS(f, messages_for_session, MessagesForSession, "SESSION_NOT_FOUND",
               {.session_id = CHARS(session)});
}

TEST(history_keeps_two_sessions_apart)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *first = session_ok(f);
    const char *second = session_ok(f);
    for (int i = 0; i < 3; i++) {
        append_many(f, first, "a");
        append_many(f, second, "b");
    }
    CHECK_STR(history_texts(f, first), "a a a");
    CHECK_STR(history_texts(f, second), "b b b");
}

TEST(history_shows_open_entries_and_the_window_does_not)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_many(f, session, "a");
    NewMessage *open = text_message(f, ROLE_ASSISTANT, "open");
    open->status = MESSAGE_STATUS_OPEN;
    entry_ok(f, session, open);
    NewMessage *failed = text_message(f, ROLE_ASSISTANT, "failed");
    failed->status = MESSAGE_STATUS_FAILED;
    entry_ok(f, session, failed);
    CHECK_STR(history_texts(f, session), "a open failed");
    CHECK_STR(window_texts(f, session), "a failed");
}
