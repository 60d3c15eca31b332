// Damage that is found when a store is opened, before LMDB reads a page.

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
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
    for (int i = 0; i < 300; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        store_ok(f.kv, key, "some text that fills pages");
    }
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
