// Stores as files.
//
// The swap keeps one rule: at each moment, also if the power goes, there is a whole store under the
// store's name. So the old file is settled, and gets a second name by a link that is flushed, and
// only then a rename takes its first one.

#include "place.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/paths.h"
#include "os/directory.h"
#include "os/lock.h"
#include "os/path.h"
#include "store/copy.h"

enum { FILE_PATH_BYTES_MAX = PATH_MAX + 2 * (NAME_MAX + 1) }; // two names below a directory

static const char PARTIAL[] = ".partial-";

typedef struct FilePath {
    char text[FILE_PATH_BYTES_MAX];
} FilePath;

static FilePath file_in(const char *directory, const char *name)
{
    FilePath path;
    int size = snprintf(path.text, sizeof(path.text), "%s/%s", directory, name);
    assert(size > 0 && (size_t)size < sizeof(path.text));
    return path;
}

int place_find(const Cli *cli, Place *out)
{
    const char *given = option_text(cli, "data");
    ErrorDetail detail = {{0}};
    out->lock = -1;
    if (!given) given = getenv("TINE_DATA");
    Error error = ERROR_NONE;
    if (given && *given) {
        if (strlen(given) >= sizeof(out->directory)) {
            return cli_say(EXIT_FAILED, "the path of the store is too long");
        }
        snprintf(out->directory, sizeof(out->directory), "%s", given);
        error = path_make_absolute(out->directory, sizeof(out->directory), &detail);
    } else {
        error = path_data_default(out->directory, sizeof(out->directory), &detail);
    }
    return error ? cli_say(EXIT_FAILED, "%s", detail.text) : EXIT_OK;
}

int place_lock(Place *place)
{
    ErrorDetail detail = {{0}};
    Error error = lock_take(file_in(place->directory, "tine.lock").text, place->directory,
                            "stop it first, for this changes its store", &detail, &place->lock);
    if (error == ERROR_UNAVAILABLE) return cli_say(EXIT_UNAVAILABLE, "%s", detail.text);
    return error ? cli_say(EXIT_FAILED, "%s", detail.text) : EXIT_OK;
}

void place_release(Place *place)
{
    if (place->lock >= 0) close(place->lock);
    place->lock = -1;
}

static void remove_stale(const char *directory, const char *name)
{
    DIR *entries = opendir(directory);
    struct dirent *entry;
    while (entries && (entry = readdir(entries))) {
        size_t size = strlen(name);
        if (strncmp(entry->d_name, name, size) != 0) continue;
        if (strncmp(entry->d_name + size, PARTIAL, strlen(PARTIAL)) != 0) continue;
        partial_remove(file_in(directory, entry->d_name).text);
    }
    if (entries) closedir(entries);
}

int place_partial(const Place *place, const char *name, char out[PATH_MAX])
{
    remove_stale(place->directory, name);
    int size =
        snprintf(out, PATH_MAX, "%s/%s%s%ld", place->directory, name, PARTIAL, (long)getpid());
    if (size > 0 && size < PATH_MAX) return EXIT_OK;
    return cli_say(EXIT_FAILED, "the path of the store is too long");
}

// For the handler, which may not put paths together.
static FilePath guarded, guarded_files[4];

static void remove_guarded(int signal_number)
{
    for (size_t i = 0; i < 4; i++)
        (void)unlink(guarded_files[i].text);
    (void)rmdir(guarded.text);
    (void)signal(signal_number, SIG_DFL);
    (void)raise(signal_number);
}

void partial_guard(const char *directory)
{
    static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof(SIGNALS) / sizeof(*SIGNALS); i++) {
        (void)signal(SIGNALS[i], SIG_DFL);
    }
    if (!directory) return;
    snprintf(guarded.text, sizeof(guarded.text), "%s", directory);
    guarded_files[0] = file_in(directory, "data.mdb");
    guarded_files[1] = file_in(directory, "lock.mdb");
    guarded_files[2] = file_in(directory, "tine.lock");
    guarded_files[3] = file_in(directory, "lock.pair");
    for (size_t i = 0; i < sizeof(SIGNALS) / sizeof(*SIGNALS); i++) {
        (void)signal(SIGNALS[i], remove_guarded);
    }
}

void partial_clean(const char *directory)
{
    (void)unlink(file_in(directory, "lock.mdb").text);
    (void)unlink(file_in(directory, "lock.pair").text);
    (void)unlink(file_in(directory, "tine.lock").text);
    char kept[32]; // of a copy that was migrated
    snprintf(kept, sizeof(kept), "before-format-%d", STORE_FORMAT_VERSION);
    FilePath kept_directory = file_in(directory, kept);
    (void)unlink(file_in(kept_directory.text, "data.mdb").text);
    (void)rmdir(kept_directory.text);
}

void partial_remove(const char *directory)
{
    partial_guard(NULL);
    partial_clean(directory);
    (void)unlink(file_in(directory, "data.mdb").text);
    (void)unlink(file_in(directory, "flushed.mdb").text);
    (void)rmdir(directory);
}

static int fail(const char *what, const char *path)
{
    return cli_say(EXIT_FAILED, "cannot %s %s: %s", what, path, strerror(errno));
}

// A file of the old store, if it is there.
static int keep_file(const Place *place, const char *keep_directory, const char *name)
{
    FilePath old = file_in(place->directory, name), kept = file_in(keep_directory, name);
    if (link(old.text, kept.text) == 0 || errno == ENOENT) return EXIT_OK;
    return fail("keep the old store as", kept.text);
}

// `with_note`: its flushed.mdb, too, for the file is not right without.
static int keep_old(const Place *place, const char *keep_directory, bool with_note)
{
    ErrorDetail detail = {{0}};
    if (access(file_in(place->directory, "data.mdb").text, F_OK) != 0) return EXIT_OK;
    if (mkdir(keep_directory, 0700) != 0) return fail("make", keep_directory);
    int code = keep_file(place, keep_directory, "data.mdb");
    if (!code && with_note) code = keep_file(place, keep_directory, "flushed.mdb");
    if (!code &&
        (directory_flush(keep_directory, &detail) || directory_flush(place->directory, &detail)))
        code = cli_say(EXIT_FAILED, "%s", detail.text);
    if (code) partial_remove(keep_directory);
    return code;
}

int place_swap(const Place *place, const char *partial, const char *keep_directory)
{
    ErrorDetail detail = {{0}};
    FilePath from = file_in(partial, "data.mdb"), to = file_in(place->directory, "data.mdb");
    partial_clean(partial);
    bool is_settled = store_settle(place->directory, &detail) == ERROR_NONE;
    if (!is_settled && !keep_directory) return cli_say(EXIT_FAILED, "%s", detail.text);
    int code = keep_directory ? keep_old(place, keep_directory, !is_settled) : EXIT_OK;
    if (code) return code;
    if (rename(from.text, to.text) != 0) {
        code = fail("rename the copy to", to.text);
        if (keep_directory) partial_remove(keep_directory);
        return code;
    }
    partial_guard(NULL);
    // Of the old file: readers of the new one are another matter.
    (void)unlink(file_in(place->directory, "lock.mdb").text);
    if (!is_settled) (void)unlink(file_in(place->directory, "flushed.mdb").text);
    (void)rmdir(partial);
    if (directory_flush(place->directory, &detail)) return cli_say(EXIT_FAILED, "%s", detail.text);
    return EXIT_OK;
}

uint64_t place_bytes(const char *directory)
{
    struct stat status;
    if (stat(file_in(directory, "data.mdb").text, &status) != 0) return 0;
    return (uint64_t)status.st_size;
}

Stamp stamp_now(void)
{
    Stamp stamp;
    struct tm now;
    time_t seconds = time(NULL);
    gmtime_r(&seconds, &now);
    strftime(stamp.text, sizeof(stamp.text), "%Y%m%dT%H%M%SZ", &now);
    return stamp;
}
