// Listings to their end.

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "steps.h"

typedef Tine__V1__MessagesForSessionRequest Request;
typedef Tine__V1__MessagesForSessionResponse Page;

enum { MESSAGES = 5 };

static Id session_with_messages(Tine *tine)
{
    Id session = session_new(tine);
    for (int i = 1; i <= MESSAGES; i++) {
        char text[32];
        snprintf(text, sizeof(text), "m%d", i);
        append_text(tine, session.text, text);
    }
    return session;
}

// Lists with two messages a page and checks that all come, in order.
static unsigned list_all(Tine *tine, const TineCallOptions *options, Request *request)
{
    TinePages pages = {0};
    Page *page;
    unsigned page_count = 0, count = 0;
    while ((page = tine_messages_for_session_next(tine, options, request, &pages))) {
        page_count++;
        for (size_t i = 0; i < page->n_messages; i++) {
            char text[16];
            snprintf(text, sizeof(text), "m%u", ++count);
            CHECK_STR(page->messages[i]->parts[0]->text->text, text);
        }
    }
    tine_pages_end(&pages);
    CHECK_EQ(pages.code, STATUS_OK);
    CHECK_EQ(count, MESSAGES);
    return page_count;
}

TEST(a_listing_has_all_pages_in_order)
{
    CLEANUP(closep) Tine *tine = open_ok("embedded::memory:");
    Id session = session_with_messages(tine);
    Request request = TINE__V1__MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = session.text;
    request.limit = 2;
    CHECK_EQ(list_all(tine, NULL, &request), 3);
    CHECK_STR(request.cursor, ""); // the caller's request is as it was
    request.limit = 0;
    CHECK_EQ(list_all(tine, NULL, &request), 1);
}

TEST(pages_may_be_decoded_into_an_arena)
{
    CLEANUP(closep) Tine *tine = open_ok("embedded::memory:");
    Id session = session_with_messages(tine);
    TineArena *arena = tine_arena_open();
    TineCallOptions options = {.allocator = tine_arena_allocator(arena)};
    Request request = TINE__V1__MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = session.text;
    request.limit = 2;
    CHECK_EQ(list_all(tine, &options, &request), 3);
    tine_arena_close(arena);
}

TEST(a_listing_may_be_left_and_begun_at_a_cursor)
{
    CLEANUP(closep) Tine *tine = open_ok("embedded::memory:");
    Id session = session_with_messages(tine);
    Request request = TINE__V1__MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = session.text;
    request.limit = 2;
    TinePages pages = {0};
    Page *page = tine_messages_for_session_next(tine, NULL, &request, &pages);
    char cursor[TINE_CURSOR_BYTES];
    snprintf(cursor, sizeof(cursor), "%s", page->next_cursor);
    tine_pages_end(&pages);
    CHECK(tine_messages_for_session_next(tine, NULL, &request, &pages) == NULL);

    pages = (TinePages){0};
    request.cursor = cursor;
    page = tine_messages_for_session_next(tine, NULL, &request, &pages);
    CHECK_STR(page->messages[0]->parts[0]->text->text, "m3");
    tine_pages_end(&pages);
}

TEST(a_listing_that_fails_says_so)
{
    CLEANUP(closep) Tine *tine = open_ok("embedded::memory:");
    TineStatus status;
    TineCallOptions options = {.out_status = &status};
    Request request = TINE__V1__MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t) "01K00000000000000000000000";
    TinePages pages = {0};
    CHECK(tine_messages_for_session_next(tine, &options, &request, &pages) == NULL);
    CHECK_EQ(pages.code, STATUS_NOT_FOUND);
    CHECK(tine_status_is(&status, TINE_REASON_SESSION_NOT_FOUND));
    CHECK(tine_messages_for_session_next(tine, &options, &request, &pages) == NULL);
    tine_pages_end(&pages);
    CHECK_EQ(pages.code, STATUS_NOT_FOUND);
}
