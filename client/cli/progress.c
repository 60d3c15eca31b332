// Progress, shown by a thread that wakes up four times a second.

#include "progress.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "format.h"
#include "text/print.h"

enum { FIRST_MS = 1000, NEXT_MS = 250 };

struct Progress {
    const char *what, *path;
    const atomic_uint_fast64_t *bytes_done; // NULL: the size of the file at `path`
    uint64_t bytes_total;
    const ImportReport *report; // NULL: not an import
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    bool is_over, has_shown;
};

static void show(Progress *progress)
{
    Printer err = print_to_stderr();
    struct stat status;
    progress->has_shown = true;
    uint64_t bytes = 0;
    if (progress->bytes_done) {
        bytes = *progress->bytes_done;
    } else if (progress->path && stat(progress->path, &status) == 0) {
        bytes = (uint64_t)status.st_size;
    } else {
        print(&err, "\r\033[K%s…", progress->what);
        print_flush(&err);
        return;
    }
    print(&err, "\r\033[K%s: ", progress->what);
    const ImportReport *report = progress->report;
    if (report && report->files_total > 1) {
        print(&err, "%" PRIuFAST64 " of %" PRIuFAST64 " files, ",
              report->files_imported + report->files_failed, report->files_total);
    }
    print(&err, "%s", format_bytes(bytes).text);
    if (progress->bytes_total > 0) {
        print(&err, " of %s", format_bytes(progress->bytes_total).text);
    }
    print_flush(&err);
}

static void *watch(void *context)
{
    Progress *progress = context;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    int64_t wait_ms = FIRST_MS;
    pthread_mutex_lock(&progress->mutex);
    while (!progress->is_over) {
        int64_t ns = until.tv_nsec + wait_ms * 1000000;
        until.tv_sec += ns / 1000000000;
        until.tv_nsec = ns % 1000000000;
        if (pthread_cond_timedwait(&progress->ended, &progress->mutex, &until) != 0) {
            show(progress);
        }
        wait_ms = NEXT_MS;
    }
    pthread_mutex_unlock(&progress->mutex);
    return NULL;
}

static Progress *begin(Progress settings)
{
    Progress *progress = isatty(STDERR_FILENO) ? calloc(1, sizeof(Progress)) : NULL;
    if (!progress) return NULL;
    *progress = settings;
    pthread_mutex_init(&progress->mutex, NULL);
    pthread_cond_init(&progress->ended, NULL);
    if (pthread_create(&progress->thread, NULL, watch, progress) == 0) return progress;
    free(progress);
    return NULL;
}

Progress *progress_begin(const char *what, const char *path, uint64_t bytes_total)
{
    return begin((Progress){.what = what, .path = path, .bytes_total = bytes_total});
}

Progress *progress_begin_counted(const char *what, const atomic_uint_fast64_t *bytes_done,
                                 uint64_t bytes_total)
{
    return begin((Progress){.what = what, .bytes_done = bytes_done, .bytes_total = bytes_total});
}

Progress *progress_begin_import(const ImportReport *report)
{
    return begin((Progress){.what = "importing",
                            .bytes_done = &report->bytes_done,
                            .bytes_total = report->bytes_total,
                            .report = report});
}

static void erase(const Progress *progress)
{
    if (!progress->has_shown) return;
    Printer err = print_to_stderr();
    print(&err, "\r\033[K");
    print_flush(&err);
}

void progress_pause(Progress *progress)
{
    if (!progress) return;
    pthread_mutex_lock(&progress->mutex);
    erase(progress);
}

void progress_resume(Progress *progress)
{
    if (progress) pthread_mutex_unlock(&progress->mutex);
}

void progress_end(Progress *progress)
{
    if (!progress) return;
    pthread_mutex_lock(&progress->mutex);
    progress->is_over = true;
    pthread_cond_signal(&progress->ended);
    pthread_mutex_unlock(&progress->mutex);
    pthread_join(progress->thread, NULL);
    erase(progress);
    pthread_mutex_destroy(&progress->mutex);
    pthread_cond_destroy(&progress->ended);
    free(progress);
}
