// What becomes of a reply: decoded into an arena, left as bytes, or lent message by message.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "steps.h"

static const char MESSAGES_FOR_SESSION[] = "/tine.v1.StoreService/MessagesForSession";

static void arena_closep(TineArena **arena)
{
    tine_arena_close(*arena);
}

static Tine__V1__MessagesForSessionRequest history_request(const Id *session)
{
    Tine__V1__MessagesForSessionRequest request = TINE__V1__MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)session->text;
    return request;
}

static Id session_of(Tine *tine, size_t count)
{
    Id session = session_new(tine);
    for (size_t i = 0; i < count; i++) {
        char text[32];
        snprintf(text, sizeof(text), "m%zu", i);
        append_text(tine, session.text, text);
    }
    return session;
}

TEST(a_response_lives_in_the_callers_arena)
{
    CLEANUP(closep) Tine *tine = open_ok("embedded::memory:");
    CLEANUP(arena_closep) TineArena *arena = tine_arena_open();
    Id session = session_of(tine, 30);
    Tine__V1__MessagesForSessionRequest request = history_request(&session);
    TineCallOptions options = {.allocator = tine_arena_allocator(arena)};
    for (int round = 0; round < 3; round++) {
        Tine__V1__MessagesForSessionResponse *response;
        CHECK_EQ(tine_messages_for_session(tine, &options, &request, &response), 0);
        CHECK_EQ(response->n_messages, 30);
        CHECK_STR(response->messages[29]->parts[0]->text->text, "m29");
        // Allowed, and without effect: the leak checker says whether anything was malloc's.
        if (round == 0) {
            protobuf_c_message_free_unpacked(&response->base, options.allocator);
            CHECK_STR(response->messages[0]->parts[0]->text->text, "m0");
        }
        tine_arena_reset(arena);
    }
}

static void *refuse(void *data, size_t size)
{
    (void)data;
    (void)size;
    return NULL;
}

static void ignore(void *data, void *pointer)
{
    (void)data;
    (void)pointer;
}

TEST(an_allocator_that_has_nothing_left_fails_the_call)
{
    CLEANUP(closep) Tine *tine = open_ok("embedded::memory:");
    Id session = session_of(tine, 1);
    Tine__V1__MessagesForSessionRequest request = history_request(&session);
    Tine__V1__MessagesForSessionResponse *response = NULL;
    ProtobufCAllocator nothing = {refuse, ignore, NULL};
    TineCallOptions options = {.allocator = &nothing};
    CHECK_EQ(tine_messages_for_session(tine, &options, &request, &response), STATUS_INTERNAL);
    CHECK(response == NULL);
}

TEST(a_call_leaves_its_bytes_in_memory_that_is_used_again)
{
    CLEANUP(closep) Tine *tine = open_ok("embedded::memory:");
    Id session = session_of(tine, 10);
    Tine__V1__MessagesForSessionRequest request = history_request(&session);
    TineBytes bytes = {.bytes = NULL};
    const void *memory = NULL;
    for (int round = 0; round < 3; round++) {
        CHECK_EQ(tine_call_bytes(tine, NULL, MESSAGES_FOR_SESSION, &request.base, &bytes), 0);
        Tine__V1__MessagesForSessionResponse *response =
            tine__v1__messages_for_session_response__unpack(NULL, bytes.size, bytes.bytes);
        CHECK(response != NULL);
        CHECK_EQ(response->n_messages, 10);
        tine__v1__messages_for_session_response__free_unpacked(response, NULL);
        if (round > 0) CHECK(memory == bytes.memory);
        memory = bytes.memory;
    }
    request.session_id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    CHECK_EQ(tine_call_bytes(tine, NULL, MESSAGES_FOR_SESSION, &request.base, &bytes),
             STATUS_NOT_FOUND);
    CHECK_EQ(bytes.size, 0);
    CHECK(bytes.bytes == NULL);
    tine_bytes_free(&bytes);
    CHECK(bytes.memory == NULL);
}

typedef struct Seen {
    size_t count, enough_at;
    char texts[256];
} Seen;

static bool see(void *context, const TineLent *lent)
{
    Seen *seen = context;
    uint8_t *bytes = malloc(lent->size + 1);
    size_t size = 0;
    for (size_t i = 0; i < lent->piece_count; i++) {
        memcpy(bytes + size, lent->pieces[i].bytes, lent->pieces[i].size);
        size += lent->pieces[i].size;
    }
    CHECK_EQ(size, lent->size);
    Tine__V1__Message *message = tine__v1__message__unpack(NULL, size, bytes);
    CHECK(message != NULL);
    size_t used = strlen(seen->texts);
    snprintf(seen->texts + used, sizeof(seen->texts) - used, "%s%s", used ? " " : "",
             message->parts[0]->text->text);
    tine__v1__message__free_unpacked(message, NULL);
    free(bytes);
    return ++seen->count != seen->enough_at;
}

TEST(messages_that_came_by_a_call_are_lent_one_by_one)
{
    CLEANUP(closep) Tine *tine = open_ok("embedded::memory:");
    Id session = session_of(tine, 5);
    Tine__V1__MessagesForSessionRequest request = history_request(&session);
    request.limit = 3;
    Seen seen = {.count = 0};
    char cursor[TINE_CURSOR_BYTES];
    CHECK_EQ(tine_read_messages(tine, NULL, &request, see, &seen, cursor), 0);
    CHECK_STR(seen.texts, "m0 m1 m2");
    CHECK(*cursor);
    request.cursor = cursor;
    CHECK_EQ(tine_read_messages(tine, NULL, &request, see, &seen, cursor), 0);
    CHECK_STR(seen.texts, "m0 m1 m2 m3 m4");
    CHECK_STR(cursor, "");

    request.cursor = "";
    seen = (Seen){.enough_at = 2};
    CHECK_EQ(tine_read_messages(tine, NULL, &request, see, &seen, cursor), 0);
    CHECK_STR(seen.texts, "m0 m1");
    CHECK_STR(cursor, "");
    request.session_id = "nonsense";
    CHECK_EQ(tine_read_messages(tine, NULL, &request, see, &seen, NULL), STATUS_INVALID_ARGUMENT);
    CHECK_EQ(seen.count, 2);
}

TEST(each_fallback_has_a_name)
{
    for (int i = 0; i < TINE_FALLBACK_COUNT; i++) {
        CHECK(*tine_fallback_name((TineFallback)i));
        CHECK(strcmp(tine_fallback_name((TineFallback)i), "UNKNOWN") != 0);
    }
    CHECK_STR(tine_fallback_name(TINE_FALLBACK_COUNT), "UNKNOWN");
}
