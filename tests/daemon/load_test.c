// Signals under load: what was accepted is answered or refused, clients go on by themselves, and
// nothing holds the daemon for longer than it waits.

#include <assert.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "base/limits.h"
#include "daemon/daemon.h"
#include "writers.h"

TEST(clients_go_on_through_orderly_restarts)
{
    static Writers writers;
    CLEANUP(tined_close) Tined tined;
    tined_place(&tined, "t");
    tined_start(&tined, NULL);
    writers_start(&writers, tined.socket, WRITERS_MAX, 0, /* is_full_allowed= */ false);
    for (size_t i = 0; i < test_scaled(10); i++) {
        writers_wait_acknowledged(&writers, 2 * WRITERS_MAX);
        CHECK_EQ(tined_stop(&tined, i % 2 ? SIGINT : SIGTERM), TINED_EXIT_STOPPED);
        tined_forget(&tined);
        tined_start(&tined, NULL);
    }
    writers_stop(&writers);
    CHECK_EQ(tined_stop(&tined, SIGTERM), TINED_EXIT_STOPPED);
    writers_check(&writers, tined.data);
}

TEST(sighup_under_load_opens_the_log_anew_each_time)
{
    static Writers writers;
    CLEANUP(tined_close) Tined tined;
    tined_place(&tined, "t");
    tined_start(&tined, (const char *[]){"--log-level", "debug", NULL});
    writers_start(&writers, tined.socket, 8, 0, /* is_full_allowed= */ false);
    size_t count = test_scaled(50);
    char old[PLACE_BYTES_MAX + 32];
    for (size_t i = 0; i < count; i++) {
        snprintf(old, sizeof(old), "%s.%zu", tined.log, i);
        CHECK_EQ(rename(tined.log, old), 0);
        CHECK_EQ(kill(tined.pid, SIGHUP), 0);
        writers_wait_acknowledged(&writers, 1);
        while (!strstr(file_text(tined.log), "log opened"))
            writers_wait_acknowledged(&writers, 1);
    }
    writers_stop(&writers);
    CHECK_EQ(tined_stop(&tined, SIGTERM), TINED_EXIT_STOPPED);
    CHECK(strstr(file_text(tined.log), "stopped") != NULL);
    writers_check(&writers, tined.data);
}

TEST(a_client_that_does_not_read_keeps_the_daemon_from_nothing)
{
    enum { TEXT_BYTES = 3 * SEND_BUFFER_BYTES, REQUESTS = 32 }; // no reply fits into a socket
    CLEANUP(tined_close) Tined tined;
    tined_place(&tined, "t");
    tined_start(&tined, NULL);
    Sp sp = sp_open(tined.socket), silent = sp_open(tined.socket);
    IdText session, message;
    char *text = calloc(1, TEXT_BYTES + 1);
    CHECK(text != NULL);
    memset(text, 'x', TEXT_BYTES);
    new_session(sp, session);
    Slice append = request_append(session, text, NULL), reply = sp_call(sp, append);
    reply_id(reply, message);
    Slice request = request_get_message(message);
    for (uint32_t i = 0; i < REQUESTS; i++)
        CHECK(sp_send(silent, i, request));
    for (int waiting = 0; waiting == 0; sched_yield())
        CHECK_EQ(ioctl(silent.fd, FIONREAD, &waiting), 0);
    check_served(sp);
    CHECK_EQ(tined_stop(&tined, SIGTERM), TINED_EXIT_STOPPED);
    sp_wait_closed(sp);
    sp_wait_closed(silent);
    const char *told = strstr(file_text(tined.log), "does not read its replies");
    CHECK(told != NULL);
    CHECK(strstr(told + 1, "does not read its replies") == NULL); // once
    sp_close(&sp);
    sp_close(&silent);
    sp_free(&reply);
    request_free(&append);
    request_free(&request);
    free(text);
}

// The storage lets one process write at a time: while this one has begun to, the daemon cannot.
static KvTxn *hold_writer(const char *data, Kv **out_kv)
{
    static const KvTableOptions TABLES[] = {{1, "meta"}};
    KvOptions options = {.file.directory = data, .tables = TABLES, .table_count = 1};
    ErrorDetail detail;
    KvTxn *txn;
    CHECK_EQ(kv_open(&options, &detail, out_kv), ERROR_NONE);
    CHECK_EQ(kv_begin(*out_kv, /* is_write= */ true, NULL, &txn), ERROR_NONE);
    return txn;
}

// Reads replies until the connection ends.
static void read_replies(Sp sp, size_t *done_count, size_t *refused_count)
{
    uint32_t id;
    Slice reply;
    while (sp_receive(sp, &id, &reply)) {
        int code = reply_code(reply);
        CHECK(code == STATUS_OK || code == STATUS_UNAVAILABLE);
        (*(code == STATUS_OK ? done_count : refused_count))++;
        sp_free(&reply);
    }
}

// More requests than a batch has: one batch has begun and is never abandoned, the rest has not.
TEST(a_daemon_whose_writer_is_held_refuses_what_has_not_begun_and_stops)
{
    enum { PEERS = 8, EACH = 40, REQUESTS = PEERS * EACH };
    static_assert((int)REQUESTS > (int)BATCH_REQUESTS_MAX, "a batch must not hold them all");
    CLEANUP(tined_close) Tined tined;
    tined_place(&tined, "t");
    tined_start(&tined, NULL);
    Sp sp = sp_open(tined.socket), peers[PEERS];
    IdText session;
    new_session(sp, session);
    Kv *kv;
    KvTxn *txn = hold_writer(tined.data, &kv);
    Slice request = request_append(session, "held", NULL);
    for (size_t i = 0; i < PEERS; i++) {
        peers[i] = sp_open(tined.socket);
        for (uint32_t j = 0; j < EACH; j++)
            CHECK(sp_send(peers[i], j, request));
    }
    check_served(sp); // reads go on
    CHECK_EQ(kill(tined.pid, SIGTERM), 0);
    size_t done = 0, refused = 0;
    for (size_t i = 0; i < PEERS; i++) {
        read_replies(peers[i], &done, &refused);
        sp_close(&peers[i]);
    }
    kv_abort(&txn);
    kv_close(kv);
    CHECK_EQ(tined_wait(&tined), TINED_EXIT_STOPPED);
    printf("%zu were done, %zu were refused\n", done, refused);
    CHECK(refused >= (size_t)REQUESTS - (size_t)BATCH_REQUESTS_MAX);
    sp_close(&sp);

    tined_forget(&tined);
    tined_start(&tined, NULL);
    sp = sp_open(tined.socket);
    uint64_t stored = session_message_count(sp, session);
    CHECK(stored >= done);
    CHECK(stored + refused <= REQUESTS);
    sp_close(&sp);
    CHECK_EQ(tined_stop(&tined, SIGTERM), TINED_EXIT_STOPPED);
    request_free(&request);
}
