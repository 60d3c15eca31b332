// Ids and sequences while many threads append at once.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine_call.h"

enum { THREADS = 32, APPENDS = 64 };

typedef struct Appending {
    Engine *engine;
    const char *session;
} Appending;

static Engine *open_ok(void)
{
    EngineOptions options = {.store = {
                                 .directory = test_dir(),
                                 .is_ephemeral = true,
                                 .map_bytes = (size_t)1 << 28,
                             }};
    Engine *engine;
    CHECK_EQ(engine_open(&options, NULL, &engine), ERROR_NONE);
    return engine;
}

static void *append_on(void *context)
{
    Appending *appending = context;
    IdText previous = "";
    for (size_t i = 0; i < test_scaled(APPENDS); i++) {
        IdText id;
        engine_append_text(appending->engine, appending->session, "one of many", id);
        CHECK(strcmp(id, previous) > 0);
        memcpy(previous, id, sizeof(IdText));
    }
    return NULL;
}

// Ids and sequences of the log must rise together, without a gap or a repeat.
static size_t check_log_order(Engine *engine, const char *session)
{
    size_t count = 0;
    IdText previous = "";
    char *cursor = strdup("");
    do {
        ListMessagesRequest request = LIST_MESSAGES_REQUEST__INIT;
        request.session_id = (char *)(uintptr_t)session;
        request.cursor = cursor;
        ListMessagesResponse *page;
        CHECK_EQ(engine_call(engine, METHOD_LIST_MESSAGES, &request, NULL, &page), ERROR_NONE);
        for (size_t i = 0; i < page->n_messages; i++) {
            CHECK_EQ(page->messages[i]->sequence, count);
            CHECK(strcmp(page->messages[i]->id, previous) > 0);
            CHECK_STR(page->messages[i]->parent_id, previous);
            snprintf(previous, sizeof(previous), "%s", page->messages[i]->id);
            count++;
        }
        free(cursor);
        cursor = strdup(page->next_cursor);
        engine_free(page);
    } while (*cursor);
    free(cursor);
    return count;
}

TEST(threads_that_append_to_one_session_get_one_order)
{
    Engine *engine = open_ok();
    IdText session;
    engine_new_session(engine, NULL, session);
    pthread_t threads[THREADS];
    Appending appending = {.engine = engine, .session = session};
    for (size_t i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, append_on, &appending), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(check_log_order(engine, session), THREADS * test_scaled(APPENDS));
    CHECK_CLEAN(engine);
    engine_close(engine);
}

TEST(threads_that_append_to_many_sessions_share_no_id)
{
    Engine *engine = open_ok();
    IdText sessions[THREADS];
    pthread_t threads[THREADS];
    Appending appendings[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        engine_new_session(engine, NULL, sessions[i]);
        appendings[i] = (Appending){.engine = engine, .session = sessions[i]};
        CHECK_EQ(pthread_create(&threads[i], NULL, append_on, &appendings[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < THREADS; i++) {
        CHECK_EQ(check_log_order(engine, sessions[i]), test_scaled(APPENDS));
    }
    CHECK_CLEAN(engine); // an id issued twice would have one owner only
    engine_close(engine);
}
