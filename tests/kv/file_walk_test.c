// Damage that is found when a store is opened, before LMDB reads a page.

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "kv/durable/file_walk.h"
#include "kv_fixture.h"

static const char *file_path(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", test_dir(), name);
    return path;
}

static void keep_finding(void *context, const PageFinding *finding)
{
    snprintf(context, 64, "%s", finding->text);
}

// Writes `size` bytes of 0xff into page `page`.
static void damage_page(long page, long at, size_t size)
{
    uint8_t bytes[4096];
    memset(bytes, 0xff, sizeof bytes);
    int file = open(file_path("data.mdb"), O_WRONLY);
    CHECK_EQ(pwrite(file, bytes, size, page * 4096 + at), (ssize_t)size);
    CHECK_EQ(close(file), 0);
}

TEST(damaged_pages_are_found_before_they_are_used)
{
    Fixture f = fixture_open();
    fill_pages(f.kv);
    fixture_close(&f);
    KvOptions options = fixture_options();
    ErrorDetail detail = {""};
    char text[64] = "";
    PageWalkOptions walk = {.found = keep_finding, .context = text};
    options.file.walk = &walk;
    for (int i = 0; i < 4; i++) {
        options.file.owns_directory = i & 1;
        options.file.read_only = i & 2;
        kv_close(open_ok(&options));
    }
    CHECK_STR(text, "");
    struct stat status;
    CHECK_EQ(stat(file_path("data.mdb"), &status), 0);
    for (long page = 2; page < status.st_size / 4096; page++)
        damage_page(page, 10, 2); // the flags
    for (int i = 0; i < 8; i++) {
        options.file.owns_directory = i & 1;
        options.file.read_only = i & 2;
        options.file.walk = i & 4 ? &walk : NULL; // the roots are always checked
        *text = '\0';
        CHECK_EQ(open_error(&options, &detail), ERROR_CORRUPT);
        CHECK(strstr(detail.text, "data.mdb is damaged in ") != NULL);
        CHECK_EQ(strncmp(text, "page ", 5) == 0, options.file.walk != NULL);
    }
    options.file.accepts_damage = true;
    DataFile *file;
    CHECK_EQ(data_file_open(&options.file, &detail, &file), ERROR_NONE);
    data_file_close(file);
}

static bool is_due(const char *boot_id, bool is_walked)
{
    KvOptions options = fixture_options();
    options.file.owns_directory = true;
    options.file.no_sync = false;
    options.file.boot_id = boot_id;
    Kv *kv = open_ok(&options);
    bool was_due = file_walk_is_due(kv_file(kv));
    file_walk_note_use(kv_file(kv));
    PageWalkOptions walk = {.found = NULL};
    PageWalkResult result = {.finding_count = 0};
    if (is_walked) CHECK_EQ(file_walk_now(kv_file(kv), &walk, NULL, &result), ERROR_NONE);
    CHECK_EQ(file_walk_is_due(kv_file(kv)), was_due && (!is_walked || result.finding_count > 0));
    store_ok(kv, "a", "some text");
    kv_close(kv);
    return was_due;
}

static void die_in_boot_2(void)
{
    KvOptions options = fixture_options();
    options.file.owns_directory = true;
    options.file.no_sync = false;
    options.file.boot_id = "2";
    Kv *kv;
    if (kv_open(&options, NULL, &kv)) return;
    file_walk_note_use(kv_file(kv));
    child_is_ready();
}

TEST(a_walk_is_due_after_a_reset_until_it_finds_nothing)
{
    CHECK(!is_due("1", false)); // a new file
    CHECK(!is_due("1", false));
    CHECK(!is_due("2", false)); // it was closed
    kill_when_ready(die_in_boot_2);
    CHECK(!is_due("2", false)); // only the process died
    kill_when_ready(die_in_boot_2);
    CHECK(is_due("3", false));
    CHECK(is_due("3", false));
    CHECK(is_due("4", true));
    CHECK(!is_due("4", false));
    kill_when_ready(die_in_boot_2);
    kill_when_ready(die_in_boot_2);
    CHECK(is_due("4", true));
    CHECK_EQ(unlink(file_path("walked.note")), 0);
    CHECK(is_due("4", true)); // nobody knows where it comes from
    CHECK_EQ(truncate(file_path("walked.note"), 30), 0);
    CHECK(is_due("4", true));
    CHECK(!is_due("4", false));
}

TEST(a_walk_stays_due_where_it_finds_damage)
{
    KvOptions options = fixture_options();
    options.file.owns_directory = true;
    Kv *kv = open_ok(&options);
    for (int i = 0; i < 300; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        store_ok(kv, key, "some text that fills pages");
    }
    kv_close(kv);
    struct stat status;
    CHECK_EQ(stat(file_path("data.mdb"), &status), 0);
    // All leaves but the roots: the quick walk at the opening finds nothing.
    int file = open(file_path("data.mdb"), O_RDWR);
    unsigned damaged = 0;
    for (long page = 2; page < status.st_size / 4096; page++) {
        uint16_t flags, bad = 0xff;
        kv = NULL;
        CHECK_EQ(pread(file, &flags, 2, page * 4096 + 10), 2);
        CHECK_EQ(pwrite(file, &bad, 2, page * 4096 + 10), 2);
        if (kv_open(&options, NULL, &kv) == ERROR_NONE) {
            damaged++;
            kv_close(kv);
        } else {
            CHECK_EQ(pwrite(file, &flags, 2, page * 4096 + 10), 2);
        }
    }
    close(file);
    CHECK(damaged > 0);
    options.file.no_sync = false;
    kv = open_ok(&options);
    CHECK(file_walk_is_due(kv_file(kv)));
    PageWalkOptions walk = {.found = NULL};
    PageWalkResult result;
    CHECK_EQ(file_walk_now(kv_file(kv), &walk, NULL, &result), ERROR_NONE);
    CHECK(result.finding_count > 0);
    CHECK(file_walk_is_due(kv_file(kv)));
    kv_close(kv);
}
