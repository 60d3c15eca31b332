// Copies of a store's files stand for deaths: the process that has them open never closes them.

#include "disk_scene.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "os/directory.h"
#include "report/log.h"

enum { TEXT_BYTES = 3000, TEXT_BYTES_MAX = 1 << 20, OVERWRITTEN = 60 };

Error scene_open_engine(DiskScene *scene, const char *boot_id)
{
    scene->options.store.boot_id = boot_id;
    return engine_open(&scene->options, NULL, &scene->engine);
}

static void note_instance(DiskScene *scene)
{
    snprintf(scene->instance, sizeof(scene->instance), "%s",
             store_instance_id(engine_store(scene->engine)));
}

DiskScene *scene_open(unsigned flush_ms)
{
    return scene_open_with(flush_ms, SCENE_KEPT);
}

DiskScene *scene_open_with(unsigned flush_ms, size_t kept)
{
    DiskScene *scene = calloc(1, sizeof(DiskScene));
    CHECK(scene != NULL);
    snprintf(scene->directory, sizeof(scene->directory), "%s/store", test_dir());
    snprintf(scene->report, sizeof(scene->report), "%s/report", test_dir());
    scene->options.store = (StoreOptions){.directory = scene->directory,
                                          .map_bytes = (size_t)1 << 28,
                                          .flush_ms = flush_ms,
                                          .flush_data_ms = FLUSH_MS_MAX};
    disk_flush_nothing();
    directory_remove(scene->directory); // of the scene before
    int report = open(scene->report, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    CHECK(report >= 0);
    log_configure(LOG_ERROR, report);
    CHECK_EQ(scene_open_engine(scene, "one"), ERROR_NONE);
    engine_new_session(scene->engine, NULL, scene->session);
    scene_append_ok(scene, kept - 1);
    CHECK_EQ(scene_append(scene, /* is_sync= */ true), ERROR_NONE);
    note_instance(scene);
    disk_keep(scene->directory);
    return scene;
}

void scene_close(DiskScene *scene)
{
    engine_close(scene->engine);
    free(scene);
}

void scene_reopen(DiskScene *scene, unsigned flush_ms, unsigned flush_data_ms)
{
    engine_close(scene->engine);
    scene->options.store.flush_ms = flush_ms;
    scene->options.store.flush_data_ms = flush_data_ms;
    CHECK_EQ(scene_open_engine(scene, "one"), ERROR_NONE);
    scene_expect_texts(scene, scene->engine, scene->count);
    disk_keep(scene->directory);
}

// ---- Calls ----

static Error append_to(Engine *engine, const char *session, unsigned number, size_t bytes,
                       bool is_sync)
{
    static char text[TEXT_BYTES_MAX + 1];
    CHECK(bytes > 8 && bytes <= TEXT_BYTES_MAX);
    memset(text, 'x', bytes);
    text[bytes] = '\0';
    snprintf(text, 8, "%07u", number);
    text[7] = ' ';
    AppendMessageRequest request = APPEND_MESSAGE_REQUEST__INIT;
    NewMessage message = NEW_MESSAGE__INIT;
    message.role = ROLE_USER;
    message.text = text;
    request.session_id = (char *)(uintptr_t)session;
    request.message = &message;
    return is_sync ? engine_call_synced(engine, METHOD_APPEND_MESSAGE, &request)
                   : engine_call(engine, METHOD_APPEND_MESSAGE, &request, NULL, NULL);
}

static void note_text(DiskScene *scene, unsigned number)
{
    CHECK(scene->count < SCENE_TEXTS_MAX);
    scene->texts[scene->count++] = number;
}

Error scene_append_bytes(DiskScene *scene, size_t bytes, bool is_sync)
{
    unsigned number = scene->next++;
    Error error = append_to(scene->engine, scene->session, number, bytes, is_sync);
    if (!error) note_text(scene, number);
    return error;
}

Error scene_append(DiskScene *scene, bool is_sync)
{
    return scene_append_bytes(scene, TEXT_BYTES, is_sync);
}

void scene_append_ok(DiskScene *scene, size_t count)
{
    for (size_t i = 0; i < count; i++)
        CHECK_EQ(scene_append(scene, /* is_sync= */ false), ERROR_NONE);
}

void scene_note_unknown(DiskScene *scene)
{
    note_text(scene, scene->next - 1);
}

void scene_append_until_closed(DiskScene *scene)
{
    scene_append_ok(scene, 1);
    while (!disk_has_failed())
        sched_yield();
    StatsRequest request = STATS_REQUEST__INIT;
    Error error = ERROR_NONE;
    while (!error) {
        error = engine_call(scene->engine, METHOD_STATS, &request, NULL, NULL);
        sched_yield();
    }
    CHECK_EQ(error, ERROR_CLOSED);
}

void scene_expect_closed(DiskScene *scene, const char *line)
{
    GetSessionRequest get = GET_SESSION_REQUEST__INIT;
    StatsRequest stats = STATS_REQUEST__INIT;
    get.session_id = scene->session;
    CHECK_EQ(scene_append(scene, /* is_sync= */ false), ERROR_CLOSED);
    CHECK_EQ(scene_append(scene, /* is_sync= */ true), ERROR_CLOSED);
    CHECK_EQ(engine_call(scene->engine, METHOD_GET_SESSION, &get, NULL, NULL), ERROR_CLOSED);
    CHECK_EQ(engine_call(scene->engine, METHOD_STATS, &stats, NULL, NULL), ERROR_CLOSED);
    CHECK_EQ(scene_logged(scene, line), 1);
}

size_t scene_logged(const DiskScene *scene, const char *text)
{
    static char all[1 << 16];
    int file = open(scene->report, O_RDONLY | O_CLOEXEC);
    ssize_t size = read(file, all, sizeof(all) - 1);
    close(file);
    CHECK(size >= 0);
    all[size] = '\0';
    size_t count = 0;
    for (const char *at = all; (at = strstr(at, text)); at++)
        count++;
    return count;
}

static void expect_numbers(Engine *engine, const char *session, const unsigned *numbers,
                           size_t count)
{
    MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)session;
    size_t at = 0;
    static char cursor[4096];
    do {
        MessagesForSessionResponse *response;
        CHECK_EQ(engine_call(engine, METHOD_MESSAGES_FOR_SESSION, &request, NULL, &response),
                 ERROR_NONE);
        for (size_t i = 0; i < response->n_messages; i++, at++) {
            CHECK(at < count); // what was refused has come back, or something is there twice
            CHECK_EQ(atoi(response->messages[i]->text), numbers[at]);
        }
        snprintf(cursor, sizeof(cursor), "%s", response->next_cursor);
        request.cursor = cursor;
        engine_free(response);
    } while (*cursor);
    CHECK_EQ(at, count);
    CHECK_CLEAN(engine);
}

void scene_expect_texts(const DiskScene *scene, Engine *engine, size_t count)
{
    expect_numbers(engine, scene->session, scene->texts, count);
}

size_t scene_count(const DiskScene *scene)
{
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    GetSessionResponse *response;
    request.session_id = (char *)(uintptr_t)scene->session;
    CHECK_EQ(engine_call(scene->engine, METHOD_GET_SESSION, &request, NULL, &response), ERROR_NONE);
    size_t count = response->session->entry_count;
    engine_free(response);
    return count;
}

// ---- Deaths ----

static void copy_file(const char *from, const char *to)
{
    static char bytes[1 << 16];
    int source = open(from, O_RDONLY | O_CLOEXEC);
    if (source < 0 && errno == ENOENT) return; // a segment that was not needed any more
    int copy = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(source >= 0 && copy >= 0);
    ssize_t size;
    while ((size = read(source, bytes, sizeof(bytes))) > 0)
        CHECK_EQ(write(copy, bytes, (size_t)size), size);
    CHECK_EQ(size, 0);
    close(source);
    close(copy);
}

static void copy_named(const char *from, const char *to, const char *name)
{
    char source[1200], copy[1200];
    snprintf(source, sizeof(source), "%s/%s", from, name);
    snprintf(copy, sizeof(copy), "%s/%s", to, name);
    copy_file(source, copy);
}

static void copy_store(const char *from, const char *to)
{
    char source[700], copy[700];
    snprintf(source, sizeof(source), "%s/log", from);
    snprintf(copy, sizeof(copy), "%s/log", to);
    directory_remove(to);
    CHECK_EQ(mkdir(to, 0700), 0);
    CHECK_EQ(mkdir(copy, 0700), 0);
    copy_named(from, to, "data.mdb");
    copy_named(from, to, "flushed.mdb");
    DIR *log = opendir(source);
    CHECK(log != NULL);
    for (struct dirent *entry; (entry = readdir(log));)
        if (entry->d_name[0] != '.') copy_named(source, copy, entry->d_name);
    closedir(log);
}

static void lose(const char *directory, SceneLoss loss)
{
    if (loss == LOSES_LOG || loss == LOSES_LOG_AND_DATA) disk_lose_log(directory);
    if (loss == LOSES_DATA || loss == LOSES_LOG_AND_DATA) disk_lose_data(directory);
}

static Engine *open_copy(const DiskScene *scene, const char *directory, const char *boot_id)
{
    ErrorDetail detail = {""};
    EngineOptions options = scene->options;
    Engine *engine;
    options.store.directory = directory;
    options.store.boot_id = boot_id;
    Error error = engine_open(&options, &detail, &engine);
    if (error) printf("%s\n", detail.text);
    CHECK_EQ(error, ERROR_NONE);
    return engine;
}

void scene_expect_after(const DiskScene *scene, SceneAfter after)
{
    char directory[600], again[600];
    static unsigned numbers[SCENE_TEXTS_MAX + OVERWRITTEN];
    snprintf(directory, sizeof(directory), "%s/copy", test_dir());
    snprintf(again, sizeof(again), "%s/again", test_dir());
    copy_store(scene->directory, directory);
    lose(directory, after.loss);
    printf("boot %s, loss %d\n", after.boot_id, after.loss);
    Engine *engine = open_copy(scene, directory, after.boot_id);
    scene_expect_texts(scene, engine, after.count);
    bool is_renewed = strcmp(store_instance_id(engine_store(engine)), scene->instance) != 0;
    CHECK_EQ(is_renewed, after.is_renewed);

    memcpy(numbers, scene->texts, after.count * sizeof(*numbers));
    for (unsigned i = 0; i < OVERWRITTEN; i++) {
        bool is_last = i == OVERWRITTEN - 1;
        unsigned number = numbers[after.count + i] = scene->next + i;
        CHECK_EQ(append_to(engine, scene->session, number, TEXT_BYTES, is_last), ERROR_NONE);
    }
    expect_numbers(engine, scene->session, numbers, after.count + OVERWRITTEN);
    copy_store(directory, again);
    engine_close(engine);
    engine = open_copy(scene, again, "three");
    expect_numbers(engine, scene->session, numbers, after.count + OVERWRITTEN);
    engine_close(engine);
    directory_remove(directory);
    directory_remove(again);
}

void scene_expect_copy(const DiskScene *scene, const char *boot_id, size_t count)
{
    char directory[600];
    snprintf(directory, sizeof(directory), "%s/copy", test_dir());
    copy_store(scene->directory, directory);
    Engine *engine = open_copy(scene, directory, boot_id);
    scene_expect_texts(scene, engine, count);
    engine_close(engine);
    directory_remove(directory);
}
