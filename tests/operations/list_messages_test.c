// ListMessages: the whole log, filtered.

#include "base/limits.h"
#include "entries.h"

// The texts of all pages, with "|" between them.
static const char *listed(Fixture *f, ListMessagesRequest request)
{
    char *joined = fixture_alloc(f, 4096);
    for (;;) {
        ListMessagesResponse *page = CALL_OK(f, list_messages, ListMessages, request);
        for (size_t i = 0; i < page->n_messages; i++) {
            const Message *message = page->messages[i];
            if (i) strncat(joined, " ", 2);
            strncat(joined, message->n_parts ? message->parts[0]->text->text : message->text, 32);
        }
        if (!*page->next_cursor) return joined;
        strncat(joined, "|", 2);
        request.cursor = page->next_cursor;
    }
}

// A log of every kind and several branches: a (b) c x, where b was left.
static const char *log_of_kinds(Fixture *f)
{
    const char *session = session_ok(f);
    const char *a = append_ok(f, session, ROLE_USER, "a");
    append_ok(f, session, ROLE_ASSISTANT, "b");
    append_after_ok(f, session, a, "c");
    setting_ok(f, session, "model", "s1");
    setting_ok(f, session, "thinking", "s2");
    entry_ok(f, session,
             &(NewMessage){.kind = MESSAGE_KIND_LABEL, .target_id = CHARS(a), .text = "l1"});
    entry_ok(f, session,
             &(NewMessage){.kind = MESSAGE_KIND_LABEL, .target_id = "other", .text = "l2"});
    NewMessage *open = text_message(f, ROLE_ASSISTANT, "open");
    open->status = MESSAGE_STATUS_OPEN;
    entry_ok(f, session, open);
    return session;
}

TEST(list_messages_shows_every_branch_and_kind_in_both_orders)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *session = log_of_kinds(f);
    ListMessagesRequest request = {.session_id = CHARS(session)};
    CHECK_STR(listed(f, request), "a b c s1 s2 l1 l2 open");
    request.newest_first = true;
    CHECK_STR(listed(f, request), "open l2 l1 s2 s1 c b a");
    rewind_ok(f, session, "");
    CHECK_STR(listed(f, request), "open l2 l1 s2 s1 c b a");
}

TEST(list_messages_filters_by_kind)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *session = log_of_kinds(f);
    MessageKind kinds[] = {MESSAGE_KIND_SETTING, MESSAGE_KIND_LABEL};
    ListMessagesRequest request = {.session_id = CHARS(session), .n_kinds = 2, .kinds = kinds};
    CHECK_STR(listed(f, request), "s1 s2 l1 l2");
    request.n_kinds = 1;
    CHECK_STR(listed(f, request), "s1 s2");
    kinds[0] = MESSAGE_KIND_CUSTOM;
    CHECK_STR(listed(f, request), "");
    kinds[0] = MESSAGE_KIND_UNSPECIFIED;
    CALL_FAILS(f, list_messages, ListMessages, "INVALID_ARGUMENT", request);
    CHECK(strstr(f->status.message, "kinds"));
}

TEST(list_messages_filters_by_role_status_subtype_and_target)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *session = log_of_kinds(f);
    char *id = CHARS(session);
    CHECK_STR(listed(f, (ListMessagesRequest){.session_id = id, .role = ROLE_ASSISTANT}), "b open");
    CHECK_STR(listed(f, (ListMessagesRequest){.session_id = id, .role = ROLE_TOOL}), "");
    CHECK_STR(listed(f, (ListMessagesRequest){.session_id = id, .status = MESSAGE_STATUS_OPEN}),
              "open");
    CHECK_STR(listed(f, (ListMessagesRequest){.session_id = id, .subtype = "thinking"}), "s2");
    CHECK_STR(listed(f, (ListMessagesRequest){.session_id = id, .subtype = "think"}), "");
    CHECK_STR(listed(f, (ListMessagesRequest){.session_id = id, .target_id = "other"}), "l2");
    ListMessagesRequest both = {
        .session_id = id, .role = ROLE_ASSISTANT, .status = MESSAGE_STATUS_COMPLETE};
    CHECK_STR(listed(f, both), "b");
}

TEST(list_messages_filters_by_deletion)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *session = session_ok(f);
    append_ok(f, session, ROLE_USER, "a");
    const char *b = append_ok(f, session, ROLE_USER, "b");
    append_ok(f, session, ROLE_USER, "c");
    message_delete_ok(f, b);
    ListMessagesRequest request = {.session_id = CHARS(session)};
    CHECK_STR(listed(f, request), "a c");
    request.deleted = DELETED_FILTER_EXCLUDE;
    CHECK_STR(listed(f, request), "a c");
    request.deleted = DELETED_FILTER_INCLUDE;
    CHECK_STR(listed(f, request), "a b c");
    request.deleted = DELETED_FILTER_ONLY;
    CHECK_STR(listed(f, request), "b");
}

TEST(list_messages_pages_by_limit_after_the_filter)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *session = session_ok(f);
    for (char c = 'a'; c <= 'g'; c++) {
        append_ok(f, session, ROLE_USER, (char[]){c, '\0'});
        append_ok(f, session, ROLE_TOOL, "tool");
    }
    ListMessagesRequest request = {
        .session_id = CHARS(session), .role = ROLE_USER, .limit = 3, .newest_first = false};
    CHECK_STR(listed(f, request), "a b c|d e f|g");
    request.newest_first = true;
    CHECK_STR(listed(f, request), "g f e|d c b|a");
}

TEST(list_messages_pages_by_bytes)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *session = session_ok(f);
    for (int i = 0; i < 5; i++)
        append_ok(f, session, ROLE_USER, filled(f, 'x', 9000));
    for (int newest_first = 0; newest_first <= 1; newest_first++) {
        ListMessagesRequest request = {
            .session_id = CHARS(session), .page_bytes = 20000, .newest_first = newest_first};
        size_t counts[3] = {2, 2, 1};
        for (size_t i = 0; i < 3; i++) {
            ListMessagesResponse *page = CALL_OK(f, list_messages, ListMessages, request);
            CHECK_EQ(page->n_messages, counts[i]);
            request.cursor = page->next_cursor;
        }
        CHECK_STR(request.cursor, "");
    }
}

TEST(list_messages_cursor_leaves_out_what_was_appended_since)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *session = session_ok(f);
    append_ok(f, session, ROLE_USER, "a");
    append_ok(f, session, ROLE_USER, "b");
    for (int newest_first = 0; newest_first <= 1; newest_first++) {
        ListMessagesRequest request = {
            .session_id = CHARS(session), .limit = 1, .newest_first = newest_first};
        request.cursor = CALL_OK(f, list_messages, ListMessages, request)->next_cursor;
        const char *appended = append_ok(f, session, ROLE_USER, "later");
        CHECK_STR(listed(f, request), newest_first ? "a" : "b");
        message_delete_ok(f, appended);
    }
}

TEST(list_messages_shows_own_entries_only)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *root = session_ok(f);
    const char *m1 = append_ok(f, root, ROLE_USER, "m1");
    const char *fork = fork_ok(f, root, m1);
    CHECK_STR(listed(f, (ListMessagesRequest){.session_id = CHARS(fork)}), "");
    append_ok(f, fork, ROLE_USER, "f1");
    CHECK_STR(listed(f, (ListMessagesRequest){.session_id = CHARS(fork)}), "f1");
    CHECK_STR(listed(f, (ListMessagesRequest){.session_id = CHARS(root)}), "m1");
}

TEST(list_messages_names_what_is_wrong)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *session = log_of_kinds(f);
    CALL_FAILS(f, list_messages, ListMessages, "SESSION_NOT_FOUND", {.session_id = UNKNOWN_ID});
    CALL_FAILS(f, list_messages, ListMessages, "INVALID_ARGUMENT", {.session_id = ""});
    CALL_FAILS(f, list_messages, ListMessages, "INVALID_ARGUMENT",
               {.session_id = CHARS(session), .limit = LIST_LIMIT_MAX + 1});
    CALL_FAILS(f, list_messages, ListMessages, "INVALID_ARGUMENT",
               {.session_id = CHARS(session), .page_bytes = PAGE_BYTES_MAX + 1});
    ListMessagesRequest request = {.session_id = CHARS(session), .limit = 1};
    request.cursor = CALL_OK(f, list_messages, ListMessages, request)->next_cursor;
    request.role = ROLE_USER;
    CALL_FAILS(f, list_messages, ListMessages, "INVALID_ARGUMENT", request);
    CHECK(strstr(f->status.message, "cursor"));
    delete_ok(f, session);
    request.role = ROLE_UNSPECIFIED;
    CHECK_STR(listed(f, request), "b|c|s1|s2|l1|l2|open");
}
