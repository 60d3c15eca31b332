// A disk that is really full, under an engine that a hundred threads read from: nothing
// acknowledged is lost, reads go on, and writes work again by themselves when there is space.

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine_call.h"
#include "report/log.h"

enum {
    READERS = 100,
    BALLAST_BYTES = 6 * 1024 * 1024,
    TEXT_BYTES = 16 * 1024,
    TEXT_BYTES_SMALLEST = 64,
    APPENDS_MAX = 8192,
    APPENDS_PER_ROUND = 16,
    ROUND_LAST = UINT32_MAX / 2,
};

typedef struct Disk {
    char directory[512];
    char store[600];
    char ballast[600];
    Engine *engine;
    IdText session;
    IdText acknowledged[APPENDS_MAX];
    size_t count;
    char *text;

    // All readers read at once, once a round: without rounds they would leave the writer no
    // processor.
    pthread_t readers[READERS];
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned round;     // that has begun; ROUND_LAST: there is no other
    size_t still_in_it; // readers that have not read in it
    bool has_readers;
} Disk;

static void disk_open(Disk *disk)
{
    if (geteuid() != 0 || unshare(CLONE_NEWNS)) SKIP("needs root to mount a tmpfs");
    snprintf(disk->directory, sizeof(disk->directory), "%s/disk", test_dir());
    snprintf(disk->store, sizeof(disk->store), "%s/store", disk->directory);
    snprintf(disk->ballast, sizeof(disk->ballast), "%s/ballast", disk->directory);
    CHECK_EQ(mkdir(disk->directory, 0700), 0);
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("tmpfs", disk->directory, "tmpfs", 0, "size=16m")) {
        SKIP("cannot mount a tmpfs");
    }
    int file = open(disk->ballast, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(file >= 0);
    CHECK_EQ(posix_fallocate(file, 0, BALLAST_BYTES), 0);
    close(file);
    log_configure(LOG_OFF, STDERR_FILENO);
    EngineOptions options = {.store = {.directory = disk->store, .map_bytes = (size_t)1 << 28}};
    CHECK_EQ(engine_open(&options, NULL, &disk->engine), ERROR_NONE);
    engine_new_session(disk->engine, NULL, disk->session);
    disk->text = malloc(TEXT_BYTES + 1);
    CHECK(disk->text != NULL);
    memset(disk->text, 'x', TEXT_BYTES);
    disk->text[TEXT_BYTES] = '\0';
}

static Error append(Disk *disk, size_t size)
{
    AppendMessageRequest request = APPEND_MESSAGE_REQUEST__INIT;
    NewMessage message = NEW_MESSAGE__INIT;
    message.role = ROLE_USER;
    message.text = disk->text + TEXT_BYTES - size;
    request.session_id = disk->session;
    request.message = &message;
    AppendMessageResponse *response;
    Error error = engine_call(disk->engine, METHOD_APPEND_MESSAGE, &request, NULL, &response);
    if (!error) {
        CHECK(disk->count < APPENDS_MAX);
        memcpy(disk->acknowledged[disk->count++], response->receipt->id, sizeof(IdText));
    }
    engine_free(response);
    return error;
}

static void check_acknowledged(Disk *disk)
{
    GetSessionRequest session = GET_SESSION_REQUEST__INIT;
    session.session_id = disk->session;
    GetSessionResponse *response;
    CHECK_EQ(engine_call(disk->engine, METHOD_GET_SESSION, &session, NULL, &response), ERROR_NONE);
    CHECK_EQ(response->session->entry_count, disk->count);
    engine_free(response);
    for (size_t i = 0; i < disk->count; i++) {
        GetMessageRequest message = GET_MESSAGE_REQUEST__INIT;
        message.by_case = GET_MESSAGE_REQUEST__BY_MESSAGE_ID;
        message.message_id = disk->acknowledged[i];
        GetMessageResponse *found;
        CHECK_EQ(engine_call(disk->engine, METHOD_GET_MESSAGE, &message, NULL, &found), ERROR_NONE);
        CHECK_EQ(found->message->sequence, i);
        engine_free(found);
    }
    CHECK_CLEAN(disk->engine);
}

static void read_once(Disk *disk)
{
    MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = disk->session;
    request.newest_first = true;
    request.limit = 3;
    CHECK_EQ(engine_call(disk->engine, METHOD_MESSAGES_FOR_SESSION, &request, NULL, NULL),
             ERROR_NONE);
}

static void *read_on(void *context)
{
    Disk *disk = context;
    unsigned done = 0;
    while (done != ROUND_LAST) {
        pthread_mutex_lock(&disk->mutex);
        while (disk->round == done)
            pthread_cond_wait(&disk->changed, &disk->mutex);
        done = disk->round;
        pthread_mutex_unlock(&disk->mutex);
        read_once(disk);
        pthread_mutex_lock(&disk->mutex);
        if (--disk->still_in_it == 0) pthread_cond_broadcast(&disk->changed);
        pthread_mutex_unlock(&disk->mutex);
    }
    return NULL;
}

// Waits for the round before, and lets every reader read once more beside what the caller does
// next.
static void begin_round(Disk *disk, unsigned round)
{
    pthread_mutex_lock(&disk->mutex);
    while (disk->still_in_it > 0)
        pthread_cond_wait(&disk->changed, &disk->mutex);
    disk->round = round;
    disk->still_in_it = READERS;
    pthread_cond_broadcast(&disk->changed);
    pthread_mutex_unlock(&disk->mutex);
}

static void start_readers(Disk *disk)
{
    for (size_t i = 0; i < READERS; i++) {
        CHECK_EQ(pthread_create(&disk->readers[i], NULL, read_on, disk), 0);
    }
    disk->has_readers = true;
}

static void end_readers(Disk *disk)
{
    begin_round(disk, ROUND_LAST);
    for (size_t i = 0; i < READERS; i++)
        pthread_join(disk->readers[i], NULL);
    disk->has_readers = false;
}

// Appends until not even a small entry fits.
static void fill_up(Disk *disk)
{
    for (size_t size = TEXT_BYTES; size >= TEXT_BYTES_SMALLEST; size /= 4) {
        Error error = ERROR_NONE;
        while (!error) {
            if (disk->has_readers && disk->count % APPENDS_PER_ROUND == 0) {
                begin_round(disk, disk->round + 1);
            }
            error = append(disk, size);
        }
        CHECK_EQ(error, ERROR_STORE_FULL);
        CHECK_EQ(error_status(error), STATUS_RESOURCE_EXHAUSTED);
    }
    CHECK(disk->count > 100);
}

static void run_full_disk(bool readers_come_first)
{
    Disk *disk = calloc(1, sizeof(Disk));
    CHECK(disk != NULL);
    disk_open(disk);
    pthread_mutex_init(&disk->mutex, NULL);
    pthread_cond_init(&disk->changed, NULL);
    if (readers_come_first) start_readers(disk);
    fill_up(disk);
    if (!readers_come_first) start_readers(disk);
    begin_round(disk, disk->round + 1);
    begin_round(disk, disk->round + 1); // all have read
    check_acknowledged(disk);
    fill_up(disk); // pages that the readers had pinned

    CHECK_EQ(unlink(disk->ballast), 0);
    for (int i = 0; i < 20; i++)
        CHECK_EQ(append(disk, TEXT_BYTES), ERROR_NONE);
    end_readers(disk);
    check_acknowledged(disk);
    engine_close(disk->engine);
    EngineOptions options = {.store = {.directory = disk->store, .map_bytes = (size_t)1 << 28}};
    CHECK_EQ(engine_open(&options, NULL, &disk->engine), ERROR_NONE);
    check_acknowledged(disk);
    engine_close(disk->engine);
    CHECK_EQ(umount2(disk->directory, MNT_DETACH), 0);
    free(disk->text);
    free(disk);
}

TEST(full_disk_loses_nothing_while_a_hundred_threads_read)
{
    run_full_disk(/* readers_come_first= */ true);
}

TEST(a_hundred_readers_come_when_the_disk_is_full_already)
{
    run_full_disk(/* readers_come_first= */ false);
}
