// Replies that borrow their messages from LMDB's pages: they are what a copy would have been, and
// no peer keeps a snapshot for long.

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "server.h"

enum {
    MESSAGES = 200,
    LONGEST_BYTES = 48 * 1024, // 4 MiB in all, which is more than a socket takes at once
};

typedef struct Scene {
    Server server;
    IdText session;
    Slice request; // for the whole history
    Slice copy;    // the reply that borrows nothing
} Scene;

// Some are shorter than what is lent, some have one chunk, some several.
static void append_messages(Scene *scene, char letter)
{
    char *text = malloc(LONGEST_BYTES + 1);
    CHECK(text != NULL);
    for (size_t i = 0; i < MESSAGES; i++) {
        size_t size = (size_t)LONGEST_BYTES * (i % 16 + 1) / 16 >> (i % 5 == 0 ? 5 : 0);
        memset(text, letter + (int)(i % 13), size);
        text[size] = '\0';
        engine_append_text(scene->server.engine, scene->session, text, NULL);
    }
    free(text);
}

// Returns the reply of the engine, to be freed with sp_free.
static Slice reply_of_engine(Engine *engine, Slice request)
{
    Rpc rpc;
    rpc_init(&rpc);
    rpc_reset(&rpc);
    rpc.request = request;
    engine_run(engine, &rpc);
    CHECK_EQ(rpc.error, ERROR_NONE);
    CHECK_EQ(rpc.loan.count, 0);
    Slice reply = buffer_slice(&rpc.reply);
    uint8_t *copy = malloc(reply.size);
    CHECK(copy != NULL);
    memcpy(copy, reply.bytes, reply.size);
    rpc_free(&rpc);
    return slice(copy, reply.size);
}

static Slice history_request(Scene *scene, uint32_t page_bytes)
{
    MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = scene->session;
    request.page_bytes = page_bytes;
    return engine_request(METHOD_MESSAGES_FOR_SESSION, &request, NULL, 0);
}

static void scene_open(Scene *scene)
{
    *scene = (Scene){.request = {NULL, 0}};
    server_open(&scene->server, NULL);
    engine_new_session(scene->server.engine, NULL, scene->session);
    append_messages(scene, 'a');
    scene->request = history_request(scene, PAGE_BYTES_MAX);
    scene->copy = reply_of_engine(scene->server.engine, scene->request);
    CHECK(scene->copy.size > 7 * SEND_BUFFER_BYTES / 2);
}

static void scene_close(Scene *scene)
{
    request_free(&scene->request);
    sp_free(&scene->copy);
    if (scene->server.engine) server_close(&scene->server);
}

static unsigned reader_count(Scene *scene)
{
    KvStats stats;
    CHECK_EQ(store_stats(engine_store(scene->server.engine), NULL, &stats), ERROR_NONE);
    return stats.readers;
}

static void wait_for_no_readers(Scene *scene)
{
    while (reader_count(scene) > 0)
        sched_yield();
}

// Asks for the history and leaves the reply unread. Returns when the first of it is there.
static Sp ask(Scene *scene)
{
    Sp sp = sp_open(scene->server.path);
    CHECK(sp_send(sp, 1, scene->request));
    while (!sp_is_readable(sp))
        sched_yield();
    return sp;
}

TEST(loan_long_history_is_what_a_copy_would_be)
{
    CLEANUP(scene_close) Scene scene;
    scene_open(&scene);
    Sp sp = sp_open(scene.server.path);
    for (size_t i = 0; i < 20; i++) {
        Slice reply = sp_call(sp, scene.request);
        CHECK_BYTES(reply, scene.copy);
        sp_free(&reply);
    }
    wait_for_no_readers(&scene);
    sp_close(&sp);
}

TEST(loan_pages_of_every_size_are_what_copies_would_be)
{
    CLEANUP(scene_close) Scene scene;
    scene_open(&scene);
    Sp sp = sp_open(scene.server.path);
    for (uint32_t bytes = LOAN_FROM_BYTES / 2; bytes < 3 * LOAN_FROM_BYTES; bytes += 20011) {
        Slice request = history_request(&scene, bytes);
        Slice copy = reply_of_engine(scene.server.engine, request), reply = sp_call(sp, request);
        CHECK_BYTES(reply, copy);
        sp_free(&reply);
        sp_free(&copy);
        request_free(&request);
    }
    sp_close(&sp);
}

// All pages of the history are freed and used again before the peer reads.
static void replace_history(Scene *scene)
{
    PurgeSessionRequest purge = PURGE_SESSION_REQUEST__INIT;
    purge.session_id = scene->session;
    CHECK_EQ(engine_call(scene->server.engine, METHOD_PURGE_SESSION, &purge, NULL, NULL),
             ERROR_NONE);
    engine_finish_purges(scene->server.engine);
    engine_new_session(scene->server.engine, NULL, scene->session);
    append_messages(scene, 'n');
}

// Returns false if the peer was cut off, because this took longer than 2 s.
static bool read_late(bool waits_for_copy)
{
    CLEANUP(scene_close) Scene scene;
    scene_open(&scene);
    Sp sp = ask(&scene);
    if (waits_for_copy) wait_for_no_readers(&scene);
    replace_history(&scene);
    uint32_t id;
    Slice reply;
    bool is_read = sp_receive(sp, &id, &reply);
    sp_close(&sp);
    if (!is_read) return false;
    CHECK_BYTES(reply, scene.copy);
    sp_free(&reply);
    return true;
}

TEST(loan_unread_history_is_not_what_was_written_meanwhile)
{
    while (!read_late(/* waits_for_copy= */ false))
        continue;
}

TEST(loan_unread_history_is_copied_before_its_snapshot_ends)
{
    while (!read_late(/* waits_for_copy= */ true))
        continue;
}

TEST(loan_peers_that_do_not_read_keep_few_snapshots_and_none_for_long)
{
    enum { PEERS = 48, RUNNING_MAX = TASK_THREADS_MAX };
    CLEANUP(scene_close) Scene scene;
    scene_open(&scene);
    Sp peers[PEERS];
    for (size_t i = 0; i < PEERS; i++) {
        peers[i] = ask(&scene);
        CHECK(reader_count(&scene) <= LOANS_LATE_MAX + RUNNING_MAX);
    }
    wait_for_no_readers(&scene);
    for (size_t i = 0; i < PEERS; i++)
        sp_close(&peers[i]);
    Sp late = sp_open(scene.server.path);
    check_served(late);
    sp_close(&late);
}

TEST(loan_peers_that_hang_up_leave_no_snapshot)
{
    CLEANUP(scene_close) Scene scene;
    scene_open(&scene);
    for (size_t i = 0; i < test_scaled(100); i++) {
        Sp sp = sp_open(scene.server.path);
        for (uint32_t j = 0; j < 4; j++)
            CHECK(sp_send(sp, j, scene.request));
        while (i % 2 == 1 && !sp_is_readable(sp))
            sched_yield();
        sp_close(&sp);
    }
    wait_for_no_readers(&scene);
}

TEST(loan_server_may_be_closed_while_a_history_waits_to_be_read)
{
    CLEANUP(scene_close) Scene scene;
    scene_open(&scene);
    Sp sp = ask(&scene);
    transport_stop_intake(scene.server.transport);
    transport_close(scene.server.transport);
    CHECK_EQ(reader_count(&scene), 0);
    engine_close(scene.server.engine);
    transport_free(scene.server.transport);
    scene.server = (Server){.engine = NULL};
    sp_close(&sp);
}

TEST(loan_call_with_sync_borrows_nothing_while_it_waits_for_the_disk)
{
    CLEANUP(scene_close) Scene scene;
    scene_open(&scene);
    MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = scene.session;
    request.page_bytes = PAGE_BYTES_MAX;
    Slice synced = engine_request_synced(METHOD_MESSAGES_FOR_SESSION, &request);
    gate_close(&scene.server.gate);
    Slice append = request_append(scene.session, "holds the writer", NULL);
    Sp writer = sp_open(scene.server.path), sp = sp_open(scene.server.path);
    CHECK(sp_send(writer, 1, append));
    gate_wait_held(&scene.server.gate);
    CHECK(sp_send(sp, 1, synced));
    WriterStats stats;
    do {
        engine_writer_stats(scene.server.engine, &stats);
    } while (stats.queued_requests == 0);
    CHECK_EQ(reader_count(&scene), 0);
    gate_open(&scene.server.gate);
    uint32_t id;
    Slice reply;
    CHECK(sp_receive(sp, &id, &reply));
    CHECK_EQ(reply_code(reply), 0);
    sp_free(&reply);
    sp_close(&sp);
    sp_close(&writer);
    request_free(&append);
    request_free(&synced);
}
