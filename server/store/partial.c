// Unfinished copies, and the signal handler that removes one.

#include "store/partial.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/store.h"

static const char MARK[] = ".partial-";

Error partial_path(const char *target, ErrorDetail *detail, StorePath *out)
{
    int size = snprintf(out->text, sizeof(out->text), "%s%s%ld", target, MARK, (long)getpid());
    if (size > 0 && size < PATH_BYTES_MAX) return ERROR_NONE;
    return error_say(detail, ERROR_INVALID_ARGUMENT,
                     "the path of the copy would be too long; choose a shorter one");
}

void partial_remove_stale(const char *directory, const char *name)
{
    DIR *entries = opendir(directory);
    struct dirent *entry;
    while (entries && (entry = readdir(entries))) {
        size_t size = strlen(name);
        if (strncmp(entry->d_name, name, size) != 0) continue;
        if (strncmp(entry->d_name + size, MARK, strlen(MARK)) != 0) continue;
        char path[PATH_BYTES_MAX];
        int path_size = snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
        if (path_size < (int)sizeof(path)) partial_remove(path);
    }
    if (entries) closedir(entries);
}

// Built in advance, because a signal handler must not call snprintf.
static StorePath guarded, guarded_files[STORE_FILES_COUNT];

static void remove_guarded(int signal_number)
{
    for (size_t i = 0; i < STORE_FILES_COUNT; i++)
        (void)unlink(guarded_files[i].text);
    (void)rmdir(guarded.text);
    (void)signal(signal_number, SIG_DFL);
    (void)raise(signal_number);
}

void partial_guard(const char *directory)
{
    static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof(SIGNALS) / sizeof(*SIGNALS); i++)
        (void)signal(SIGNALS[i], SIG_DFL);
    if (!directory) return;
    snprintf(guarded.text, sizeof(guarded.text), "%s", directory);
    store_files_paths(directory, guarded_files);
    for (size_t i = 0; i < sizeof(SIGNALS) / sizeof(*SIGNALS); i++)
        (void)signal(SIGNALS[i], remove_guarded);
}

void partial_clean(const char *directory)
{
    store_files_clean(directory);
    StorePath kept = store_path_before_format(directory, STORE_FORMAT_VERSION, 1);
    store_files_remove(kept.text);
}

void partial_remove(const char *directory)
{
    partial_guard(NULL);
    partial_clean(directory);
    store_files_remove(directory);
}
