// Direct reads, against a real tined: what they see, and that on any doubt they are calls.

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "channel_direct.h"
#include "client.h"
#include "direct_steps.h"
#include "direct_store.h"

TEST(a_direct_read_sees_every_acknowledged_write)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    CLEANUP(closep) Tine *tine = open_direct(&tined);
    CLEANUP(closep) Tine *writer = open_ok(tined.url);
    Id session = session_new(tine);
    for (unsigned i = 0; i < 200; i++) {
        append_text(i % 2 ? tine : writer, session.text, "m");
        CHECK_EQ(message_count(tine, session.text), i + 1);
    }
    TineClientStats stats = stats_of(tine);
    CHECK(stats.is_direct);
    CHECK_EQ(stats.direct_reads, 200);
    CHECK_EQ(stats.calls, 101);
    CHECK_STR(stats.last_why, "");
    check_only(tine, TINE_FALLBACK_COUNT, 0);
    CHECK_EQ(stats_of(writer).direct_reads, 0);
    CHECK(!stats_of(writer).is_direct);
}

TEST(a_direct_read_says_what_a_call_would_say)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    CLEANUP(closep) Tine *tine = open_direct(&tined);
    TineStatus status;
    TineCallOptions options = {.out_status = &status};
    char answer[ANSWER_BYTES_MAX];
    CHECK_EQ(ask(tine, &options, "01ARZ3NDEKTSV4RRFFQ69G5FAV", answer), STATUS_NOT_FOUND);
    CHECK_STR(status.reason, "SESSION_NOT_FOUND");
    CHECK_EQ(ask(tine, &options, "nonsense", answer), STATUS_INVALID_ARGUMENT);
    CHECK_EQ(stats_of(tine).direct_reads, 2);

    Tine__V1__HealthRequest request = TINE__V1__HEALTH_REQUEST__INIT;
    Tine__V1__HealthResponse *response;
    CHECK_EQ(tine_health(tine, NULL, &request, &response), 0);
    tine__v1__health_response__free_unpacked(response, NULL);
    check_only(tine, TINE_FALLBACK_ASKS_SERVER, 1);
}

static uint64_t unflushed(Tine *tine)
{
    Tine__V1__StatsResponse *stats = server_stats(tine);
    uint64_t commits = stats->unflushed_commits;
    tine__v1__stats_response__free_unpacked(stats, NULL);
    return commits;
}

TEST(a_read_that_asks_for_the_disk_is_a_call)
{
    CLEANUP(tined_end) Tined tined = {.flush_every = "60s"};
    tined_start(&tined);
    CLEANUP(closep) Tine *tine = open_direct(&tined);
    CLEANUP(closep) Tine *other = open_ok(tined.url);
    Id session = session_new(tine);
    CHECK_EQ(message_count(tine, session.text), 0);
    CHECK(unflushed(other) > 0);
    Tine__V1__GetSessionRequest request = TINE__V1__GET_SESSION_REQUEST__INIT;
    Tine__V1__GetSessionResponse *response;
    request.session_id = session.text;
    TineCallOptions options = {.sync = true};
    CHECK_EQ(tine_get_session(tine, &options, &request, &response), 0);
    tine__v1__get_session_response__free_unpacked(response, NULL);
    CHECK_EQ(unflushed(other), 0);
    check_only(tine, TINE_FALLBACK_ASKS_SERVER, 1);
    CHECK_EQ(stats_of(tine).direct_reads, 1);
}

TEST(two_clients_of_a_process_share_one_map)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    CLEANUP(closep) Tine *tine = open_direct(&tined);
    Id session = session_new(tine);
    for (int i = 0; i < 3; i++) {
        CLEANUP(closep) Tine *other = open_direct(&tined);
        CHECK_EQ(message_count(other, session.text), 0);
        CHECK_EQ(message_count(tine, session.text), 0);
        check_only(other, TINE_FALLBACK_COUNT, 0);
    }
    check_only(tine, TINE_FALLBACK_COUNT, 0);
}

typedef struct Lent {
    unsigned count;
    size_t pieces, bytes;
    char text[32]; // how the last one begins
} Lent;

static bool note(void *context, const TineLent *lent)
{
    Lent *noted = context;
    uint8_t *bytes = malloc(lent->size);
    size_t size = 0;
    for (size_t i = 0; i < lent->piece_count; i++) {
        memcpy(bytes + size, lent->pieces[i].bytes, lent->pieces[i].size);
        size += lent->pieces[i].size;
    }
    CHECK_EQ(size, lent->size);
    Tine__V1__Message *message = tine__v1__message__unpack(NULL, size, bytes);
    CHECK(message != NULL);
    noted->count++;
    noted->pieces = lent->piece_count;
    noted->bytes = strlen(message->parts[0]->text->text);
    snprintf(noted->text, sizeof(noted->text), "%.31s", message->parts[0]->text->text);
    tine__v1__message__free_unpacked(message, NULL);
    free(bytes);
    return true;
}

TEST(messages_are_lent_from_the_store_s_pages)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    CLEANUP(closep) Tine *tine = open_direct(&tined);
    Id session = session_new(tine);
    append_text(tine, session.text, "small");
    Tine__V1__MessagesForSessionRequest request = TINE__V1__MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = session.text;
    Lent lent = {.count = 0};
    char cursor[TINE_CURSOR_BYTES];
    CHECK_EQ(tine_read_messages(tine, NULL, &request, note, &lent, cursor), 0);
    CHECK_EQ(lent.count, 1);
    CHECK_EQ(lent.pieces, 1);
    CHECK_STR(lent.text, "small");

    char *large = calloc(1, LARGE_BYTES + 1);
    memset(large, 'x', LARGE_BYTES);
    append_text(tine, session.text, large);
    free(large);
    CHECK_EQ(tine_read_messages(tine, NULL, &request, note, &lent, cursor), 0);
    CHECK_EQ(lent.count, 3);
    CHECK(lent.pieces > LARGE_BYTES / 4096);
    CHECK_EQ(lent.bytes, LARGE_BYTES);
    CHECK_STR(cursor, "");

    request.limit = 1;
    CHECK_EQ(tine_read_messages(tine, NULL, &request, note, &lent, cursor), 0);
    CHECK_STR(lent.text, "small");
    request.cursor = cursor;
    CHECK_EQ(tine_read_messages(tine, NULL, &request, note, &lent, cursor), 0);
    CHECK_EQ(lent.bytes, LARGE_BYTES);
    CHECK_EQ(lent.count, 5);
    check_only(tine, TINE_FALLBACK_COUNT, 0);
}

TEST(a_stopped_reader_is_named_and_a_killed_one_cleared_away)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    CLEANUP(closep) Tine *tine = open_ok(tined.url);
    Id session = session_new(tine);
    append_text(tine, session.text, "m");
    pid_t reader = reader_in_a_read(&tined, session.text);
    CHECK_EQ(kill(reader, SIGSTOP), 0);
    for (int i = 0; i < 50; i++)
        append_text(tine, session.text, "more");
    Tine__V1__StatsResponse *stats = server_stats(tine);
    CHECK_EQ(stats->oldest_reader_pid, reader);
    CHECK(stats->last_txn - stats->oldest_reader_txn >= 50);
    tine__v1__stats_response__free_unpacked(stats, NULL);

    CHECK_EQ(kill(reader, SIGKILL), 0);
    CHECK_EQ(waitpid(reader, NULL, 0), reader);
    uint32_t oldest = (uint32_t)reader;
    while (oldest == (uint32_t)reader) { // tined looks every 15 s; the harness ends a longer wait
        stats = server_stats(tine);
        oldest = stats->oldest_reader_pid;
        tine__v1__stats_response__free_unpacked(stats, NULL);
        (void)poll(NULL, 0, 100);
    }
}

static void copy_over(const Tined *tined)
{
    char command[4096];
    snprintf(command, sizeof(command), "cp %s/data.mdb %s/copy && mv %s/copy %s/data.mdb",
             tined->data, tined->data, tined->data, tined->data);
    CHECK_EQ(system(command), 0);
}

TEST(a_file_that_was_replaced_is_read_no_more)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    CLEANUP(closep) Tine *tine = open_direct(&tined);
    Id session = session_new(tine);
    CHECK_EQ(message_count(tine, session.text), 0);
    append_text(tine, session.text, "m");
    copy_over(&tined); // under the server, too, which still reads the file that it has
    CHECK_EQ(message_count(tine, session.text), 1);
    CHECK_EQ(message_count(tine, session.text), 1);
    TineClientStats stats = stats_of(tine);
    CHECK_EQ(stats.fallbacks[TINE_FALLBACK_REPLACED], 1);
    CHECK_EQ(stats.fallbacks[TINE_FALLBACK_NOT_OFFERED], 1);
    CHECK_EQ(stats.direct_reads, 1);
    CHECK(!stats.is_direct);
}

TEST(a_directory_that_was_moved_is_read_no_more)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    CLEANUP(closep) Tine *tine = open_direct(&tined);
    Id session = session_new(tine);
    CHECK_EQ(message_count(tine, session.text), 0);
    char elsewhere[sizeof(tined.data) + 8];
    snprintf(elsewhere, sizeof(elsewhere), "%s.moved", tined.data);
    CHECK_EQ(rename(tined.data, elsewhere), 0);
    CHECK_EQ(mkdir(tined.data, 0700), 0);
    append_text(tine, session.text, "m"); // the server goes on with the file that it has
    CHECK_EQ(message_count(tine, session.text), 1);
    TineClientStats stats = stats_of(tine);
    CHECK_EQ(stats.fallbacks[TINE_FALLBACK_REPLACED], 1);
    CHECK_EQ(stats.direct_reads, 1);
    CHECK_EQ(rmdir(tined.data), 0);
    CHECK_EQ(rename(elsewhere, tined.data), 0);
}

TEST(memory_that_a_long_page_took_is_used_again)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    CLEANUP(closep) Tine *tine = open_direct(&tined);
    Id session = session_new(tine);
    char *large = malloc(LARGE_BYTES + 1);
    memset(large, 'x', LARGE_BYTES);
    large[LARGE_BYTES] = '\0';
    for (size_t bytes = 0; bytes <= BUFFER_KEEP_BYTES_MAX; bytes += LARGE_BYTES)
        append_text(tine, session.text, large);
    free(large);
    Tine__V1__MessagesForSessionRequest request = TINE__V1__MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = session.text;
    request.page_bytes = PAGE_BYTES_MAX;
    TineBytes page = {.bytes = NULL};
    void *memory = NULL;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(tine_call_bytes(tine, NULL, "/tine.v1.StoreService/MessagesForSession",
                                 &request.base, &page),
                 0);
        CHECK(page.size > BUFFER_KEEP_BYTES_MAX);
        if (i > 0) CHECK(page.memory == memory);
        memory = page.memory;
    }
    tine_bytes_free(&page);
    CHECK_EQ(stats_of(tine).direct_reads, 3);
}

TEST(a_server_that_was_restarted_on_another_file_is_found_again)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    CLEANUP(closep) Tine *tine = open_direct(&tined);
    Id session = session_new(tine);
    CHECK_EQ(message_count(tine, session.text), 0);
    for (unsigned i = 1; i <= 3; i++) {
        tined_stop(&tined);
        copy_over(&tined);
        tined_start(&tined);
        append_text(tine, session.text, "m");
        for (int j = 0; j < 5; j++)
            CHECK_EQ(message_count(tine, session.text), i);
        CHECK(stats_of(tine).is_direct);
    }
    CHECK(stats_of(tine).direct_reads >= 1 + 3 * 4);
    tined_kill(&tined);
    tined_start(&tined);
    append_text(tine, session.text, "m");
    CHECK_EQ(message_count(tine, session.text), 4);
}

TEST(a_store_that_outgrows_the_map_is_mapped_anew)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    CLEANUP(closep) Tine *tine = open_direct(&tined);
    channel_direct_for_test(tine->channel, (Clock){.now_ms = NULL}, 1 << 20);
    Id session = session_new(tine);
    CHECK_EQ(message_count(tine, session.text), 0);
    char *large = calloc(1, LARGE_BYTES + 1);
    memset(large, 'x', LARGE_BYTES);
    for (unsigned i = 1; i <= 30; i++) {
        append_text(tine, session.text, large);
        CHECK_EQ(message_count(tine, session.text), i);
    }
    free(large);
    check_only(tine, TINE_FALLBACK_MAP_GROWN, 1);
    CHECK_EQ(stats_of(tine).direct_reads, 30);
}

static bool fork_in_the_middle(void *context, const TineLent *lent)
{
    (void)lent;
    *(pid_t *)context = fork();
    return false;
}

TEST(a_child_of_fork_calls)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    CLEANUP(closep) Tine *tine = open_direct(&tined);
    Id session = session_new(tine);
    append_text(tine, session.text, "m");
    CHECK_EQ(message_count(tine, session.text), 1);
    pid_t child = fork();
    if (child == 0) {
        bool is_good = message_count(tine, session.text) == 1 &&
                       stats_of(tine).fallbacks[TINE_FALLBACK_FORKED] == 1;
        tine_close(tine);
        tine = open_direct(&tined); // its own reads directly again
        is_good =
            is_good && message_count(tine, session.text) == 1 && stats_of(tine).direct_reads == 1;
        tine_close(tine);
        _exit(is_good ? 0 : 1);
    }
    CHECK_EQ(exit_code_of(child), 0);

    Tine__V1__MessagesForSessionRequest request = TINE__V1__MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = session.text;
    int code = tine_read_messages(tine, NULL, &request, fork_in_the_middle, &child, NULL);
    if (child == 0) { // came back out of its parent's transaction
        bool is_good = message_count(tine, session.text) == 1;
        tine_close(tine);
        _exit(is_good ? 0 : 1);
    }
    CHECK_EQ(code, 0);
    CHECK_EQ(exit_code_of(child), 0);
    append_text(tine, session.text, "m");
    CHECK_EQ(message_count(tine, session.text), 2);
    check_only(tine, TINE_FALLBACK_COUNT, 0);
}

TEST(another_user_is_refused)
{
    if (geteuid() != 0) SKIP("only root can become another user");
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    pid_t child = fork();
    if (child == 0) {
        if (setuid(65534)) _exit(2);
        Tine *tine = open_direct(&tined);
        int code = ask_plain(tine, "01ARZ3NDEKTSV4RRFFQ69G5FAV");
        bool is_good = code == STATUS_UNAVAILABLE && stats_of(tine).direct_reads == 0;
        tine_close(tine);
        _exit(is_good ? 0 : 1);
    }
    CHECK_EQ(exit_code_of(child), 0);
}

// What a server says of its store, with one thing wrong.
static TineFallback fallback_for(const Tine__V1__DescribeResponse *described,
                                 const Tine__V1__DirectReads *said, uint32_t format)
{
    DirectPlace place = {
        .said = said,
        .peer_user = geteuid(),
        .instance_id = described->instance_id,
        .format = format,
    };
    DirectStore *store;
    Doubt doubt = {.fallback = TINE_FALLBACK_COUNT};
    CHECK(!direct_store_open(&place, &store, &doubt));
    CHECK(doubt.why[0]);
    return doubt.fallback;
}

TEST(a_store_that_may_not_be_read_here_is_not_opened)
{
    char url[600];
    snprintf(url, sizeof(url), "embedded:%s/data", test_dir());
    CLEANUP(closep) Tine *tine = open_ok(url);
    Tine__V1__DescribeRequest request = TINE__V1__DESCRIBE_REQUEST__INIT;
    Tine__V1__DescribeResponse *described;
    CHECK_EQ(tine_describe(tine, NULL, &request, &described), 0);
    Tine__V1__DirectReads *said = described->direct_reads, wrong = *said;
    uint32_t format = described->format_version;
    CHECK_EQ(fallback_for(described, said, format), TINE_FALLBACK_OPEN_HERE);
    CHECK_EQ(fallback_for(described, NULL, format), TINE_FALLBACK_NOT_OFFERED);
    CHECK_EQ(fallback_for(described, said, format + 1), TINE_FALLBACK_OTHER_FORMAT);
    wrong.user_id++;
    CHECK_EQ(fallback_for(described, &wrong, format), TINE_FALLBACK_OTHER_USER);
    wrong = *said;
    wrong.pid_namespace++;
    CHECK_EQ(fallback_for(described, &wrong, format), TINE_FALLBACK_OTHER_NAMESPACE);
    wrong = *said;
    wrong.directory = "/nowhere";
    CHECK_EQ(fallback_for(described, &wrong, format), TINE_FALLBACK_OTHER_NAMESPACE);
    wrong = *said;
    wrong.data_inode++;
    CHECK_EQ(fallback_for(described, &wrong, format), TINE_FALLBACK_REPLACED);
    tine__v1__describe_response__free_unpacked(described, NULL);
}
