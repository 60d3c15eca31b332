// PutOriginal and ListOriginals: the verbatim source of imported entries.

#include "base/limits.h"
#include "entries.h"

static ProtobufCBinaryData bytes_of(const char *text)
{
    return (ProtobufCBinaryData){strlen(text), (uint8_t *)(uintptr_t)text};
}

static Receipt *put_ok(Fixture *f, const char *message, const char *content)
{
    return CALL_OK(f, put_original, PutOriginal,
                   {.message_id = CHARS(message), .content = bytes_of(content)})
        ->receipt;
}

static void put_fails(Fixture *f, const char *message, const char *content, const char *reason)
{
    CALL_FAILS(f, put_original, PutOriginal, reason,
               {.message_id = CHARS(message), .content = bytes_of(content)});
}

// The first bytes of all originals, page by page: "abc".
static const char *listed(Fixture *f, ListOriginalsRequest request)
{
    char *order = fixture_alloc(f, 64);
    do {
        ListOriginalsResponse *page = CALL_OK(f, list_originals, ListOriginals, request);
        for (size_t i = 0; i < page->n_originals; i++) {
            strncat(order, (const char *)page->originals[i]->content.data, 1);
        }
        request.cursor = page->next_cursor;
    } while (*request.cursor);
    return order;
}

static ListOriginalsResponse *list_ok(Fixture *f, const char *session)
{
    return CALL_OK(f, list_originals, ListOriginals, {.session_id = CHARS(session)});
}

TEST(original_comes_back_as_it_was)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    f->now_ms += 5;
    const char *id = append_ok(f, session, ROLE_USER, "hello");
    static uint8_t bytes[] = "{\"type\":\"message\",\0\xff\xfe}\r";
    ProtobufCBinaryData content = {sizeof(bytes), bytes};
    f->now_ms += 5;
    Receipt *receipt =
        CALL_OK(f, put_original, PutOriginal, {.message_id = CHARS(id), .content = content})
            ->receipt;
    CHECK_STR(receipt->id, id);
    CHECK_STR(receipt->session_id, session);
    CHECK_EQ(receipt->sequence, 0);
    CHECK_EQ(receipt->created_at, f->now_ms - 5);
    ListOriginalsResponse *page = list_ok(f, session);
    CHECK_EQ(page->n_originals, 1);
    CHECK_STR(page->originals[0]->message_id, id);
    CHECK_BYTES(slice(page->originals[0]->content.data, page->originals[0]->content.len),
                slice(bytes, sizeof(bytes)));
    CHECK_STR(page->next_cursor, "");
}

TEST(original_is_no_part_of_the_entry_and_no_event_tells_of_it)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = append_ok(f, session, ROLE_USER, "hello");
    Message *before = message_ok(f, id);
    Session *session_before = get_ok(f, session);
    uint64_t newest = newest_sequence(f);
    f->now_ms += 5;
    put_ok(f, id, "x");
    CHECK_EQ(newest_sequence(f), newest);
    CHECK_EQ(get_ok(f, session)->updated_at, session_before->updated_at);
    CHECK_EQ(protobuf_c_message_get_packed_size(&message_ok(f, id)->base),
             protobuf_c_message_get_packed_size(&before->base));
    CHECK_STR(history_texts(f, session), "hello");
}

TEST(original_put_again_replaces_the_older_one)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = append_ok(f, session, ROLE_USER, "hello");
    put_ok(f, id, filled(f, 'a', 3 * VALUE_BYTES_MAX));
    put_ok(f, id, "b");
    CHECK_STR(listed(f, (ListOriginalsRequest){.session_id = CHARS(session)}), "b");
    CHECK_EQ(table_rows(f, "originals"), 1);
}

TEST(original_listing_is_in_the_entries_order_and_pages)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *ids[8];
    for (size_t i = 0; i < 8; i++)
        ids[i] = append_ok(f, session, ROLE_USER, "m");
    for (size_t i = 8; i-- > 0;) {
        if (i == 3) continue; // written here, not imported
        size_t size = i == 5 ? 3 * VALUE_BYTES_MAX : i == 6 ? VALUE_BYTES_MAX : 3000;
        put_ok(f, ids[i], filled(f, (char)('a' + i), size));
    }
    const char *other = session_ok(f);
    put_ok(f, append_ok(f, other, ROLE_USER, "m"), "other");
    ListOriginalsRequest requests[] = {
        {.session_id = CHARS(session)},
        {.session_id = CHARS(session), .limit = 1},
        {.session_id = CHARS(session), .limit = 3},
        {.session_id = CHARS(session), .page_bytes = 8000},
        {.session_id = CHARS(session), .page_bytes = 1},
    };
    for (size_t i = 0; i < 5; i++)
        CHECK_STR(listed(f, requests[i]), "abcefgh");
    CHECK_EQ(CALL_OK(f, list_originals, ListOriginals, requests[3])->n_originals, 2);
    CHECK_STR(list_ok(f, session)->originals[4]->message_id, ids[5]);
    CHECK_EQ(list_ok(f, session)->originals[4]->content.len, 3 * VALUE_BYTES_MAX);
    CHECK_STR(listed(f, (ListOriginalsRequest){.session_id = CHARS(other)}), "o");
    CHECK_EQ(list_ok(f, fork_ok(f, session, NULL))->n_originals, 0); // a fork's own entries
}

TEST(original_limits_hold_at_them_and_past_them)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = append_ok(f, session, ROLE_USER, "m");
    const char *next = append_ok(f, session, ROLE_USER, "m");
    put_fails(f, id, filled(f, 'x', ORIGINAL_BYTES_MAX + 1), "TOO_LONG");
    CHECK(strstr(f->status.message, "content"));
    put_ok(f, id, filled(f, 'x', ORIGINAL_BYTES_MAX));
    put_ok(f, next, "y");
    ListOriginalsResponse *page = list_ok(f, session);
    CHECK_EQ(page->n_originals, 1);
    CHECK_EQ(page->originals[0]->content.len, ORIGINAL_BYTES_MAX);
    CHECK_EQ(page->originals[0]->content.data[ORIGINAL_BYTES_MAX - 1], 'x');
    CHECK_STR(listed(f, (ListOriginalsRequest){.session_id = CHARS(session)}), "xy");
    CALL_FAILS(f, list_originals, ListOriginals, "INVALID_ARGUMENT",
               {.session_id = CHARS(session), .limit = LIST_LIMIT_MAX + 1});
    CALL_FAILS(f, list_originals, ListOriginals, "INVALID_ARGUMENT",
               {.session_id = CHARS(session), .page_bytes = PAGE_BYTES_MAX + 1});
    CALL_FAILS(f, list_originals, ListOriginals, "INVALID_ARGUMENT",
               {.session_id = CHARS(session), .cursor = "x"});
}

TEST(original_calls_refuse_what_is_missing_or_closed)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = append_ok(f, session, ROLE_USER, "m");
    put_fails(f, "", "x", "INVALID_ARGUMENT");
    CHECK(strstr(f->status.message, "message_id"));
    put_fails(f, id, "", "INVALID_ARGUMENT");
    CHECK(strstr(f->status.message, "content"));
    put_fails(f, UNKNOWN_ID, "x", "MESSAGE_NOT_FOUND");
    CALL_FAILS(f, list_originals, ListOriginals, "SESSION_NOT_FOUND", {.session_id = UNKNOWN_ID});
    CALL_FAILS(f, list_originals, ListOriginals, "INVALID_ARGUMENT", {.session_id = ""});
    put_ok(f, id, "a");
    archive_ok(f, session, true);
    put_fails(f, id, "x", "SESSION_ARCHIVED");
    archive_ok(f, session, false);
    delete_ok(f, session);
    put_fails(f, id, "x", "SESSION_DELETED");
    CHECK_STR(listed(f, (ListOriginalsRequest){.session_id = CHARS(session)}), "a");
}

TEST(original_stays_with_a_deleted_entry_and_goes_with_a_purged_one)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = append_ok(f, session, ROLE_USER, "m");
    put_ok(f, id, "a secret that must go");
    message_delete_ok(f, id);
    CHECK_STR(listed(f, (ListOriginalsRequest){.session_id = CHARS(session)}), "a");
    put_ok(f, id, "again a secret that must go");
    message_purge_ok(f, id);
    CHECK_EQ(list_ok(f, session)->n_originals, 0);
    CHECK(!store_holds(f, "secret"));
    put_fails(f, id, "secret", "MESSAGE_SEALED");
    CHECK(strstr(f->status.message, "purged"));
}

TEST(originals_go_with_their_session_also_where_a_tombstone_stays)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *gone = session_ok(f), *kept = session_ok(f), *other = session_ok(f);
    put_ok(f, append_ok(f, gone, ROLE_USER, "m"), filled(f, 'a', 3 * VALUE_BYTES_MAX));
    const char *id = append_ok(f, kept, ROLE_USER, "m");
    put_ok(f, id, "b");
    put_ok(f, append_ok(f, other, ROLE_USER, "m"), "c");
    fork_ok(f, kept, id);
    purge_ok(f, gone, /* keep_for_forks= */ false);
    CHECK(purge_ok(f, kept, /* keep_for_forks= */ true));
    put_fails(f, id, "x", "SESSION_NOT_FOUND");
    purges_settle(f);
    CHECK_EQ(table_rows(f, "originals"), 1);
    CALL_FAILS(f, list_originals, ListOriginals, "SESSION_NOT_FOUND", {.session_id = CHARS(kept)});
}

TEST(original_replays_change_nothing)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *id = append_ok(f, session, ROLE_USER, "m");
    PutOriginalRequest request = {.message_id = CHARS(id), .content = bytes_of("a")};
    Receipt *first = CALL_OK_WITH(f, "op", put_original, PutOriginal, request)->receipt;
    put_ok(f, id, "b");
    Receipt *again = CALL_OK_WITH(f, "op", put_original, PutOriginal, request)->receipt;
    CHECK_STR(again->id, first->id);
    CHECK_EQ(again->created_at, first->created_at);
    CHECK_STR(listed(f, (ListOriginalsRequest){.session_id = CHARS(session)}), "b");
    request.content = bytes_of("c");
    CALL_FAILS_WITH(f, "op", put_original, PutOriginal, "OPERATION_ID_REUSED", request);
}

TEST(originals_come_along_with_an_exchange_or_not_at_all)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    NewMessage *messages[] = {text_message(f, ROLE_USER, "1"), text_message(f, ROLE_USER, "2"),
                              text_message(f, ROLE_USER, "3")};
    NewOriginal first = {.content = bytes_of("a")}, third = {.content = bytes_of("c\r\n")};
    NewOriginal none = {.content = {0, NULL}};
    NewOriginal *originals[] = {&first, &none, &third};
    AppendExchangeRequest request = {.session_id = CHARS(session),
                                     .messages = messages,
                                     .n_messages = 3,
                                     .originals = originals,
                                     .n_originals = 3};
    AppendExchangeResponse *reply = CALL_OK(f, append_exchange, AppendExchange, request);
    ListOriginalsResponse *page = list_ok(f, session);
    CHECK_EQ(page->n_originals, 2);
    CHECK_STR(page->originals[0]->message_id, reply->receipts[0]->id);
    CHECK_STR(page->originals[1]->message_id, reply->receipts[2]->id);
    CHECK_EQ(page->originals[1]->content.len, 3);
    request.n_originals = 2;
    CALL_FAILS(f, append_exchange, AppendExchange, "INVALID_ARGUMENT", request);
    request.n_originals = 3;
    request.replay = true;
    CALL_FAILS(f, append_exchange, AppendExchange, "INVALID_ARGUMENT", request);
    CHECK_EQ(get_ok(f, session)->entry_count, 3);
}
