// A note is a line:
//
//     started 1764000000 ended 1764000003 signal 11 in purge
//
// Its first part is made when tined starts, because a signal handler may call very little.

#include "daemon/crash_notes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "report/activity.h"

// Of a longer file the first notes decide: there was a loop long ago.
enum { LOOP_S = 60, NOTES_BYTES_MAX = 64 * 1024, LINE_BYTES_MAX = 160 };

static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGABRT};

// What the handler needs.
static struct {
    int file;
    char beginning[LINE_BYTES_MAX / 2]; // "started … ended "
    atomic_flag is_noted;               // two threads may crash at once
} watch = {.file = -1, .is_noted = ATOMIC_FLAG_INIT};

static void note_read(CrashNotes *notes, const char *line)
{
    CrashNotes note = {.signal = 0};
    int fields = sscanf(line, "started %" SCNd64 " ended %" SCNd64 " signal %d in %39s",
                        &note.started_s, &note.ended_s, &note.signal, note.activity);
    if (fields < 3) return; // cut off
    int64_t since_s = note.started_s - notes->started_s;
    if (notes->count > 0 && since_s <= LOOP_S && since_s >= -LOOP_S) notes->is_loop = true;
    notes->count++;
    notes->started_s = note.started_s;
    notes->ended_s = note.ended_s;
    notes->signal = note.signal;
    memcpy(notes->activity, note.activity, sizeof(notes->activity));
}

static Error notes_read(CrashNotes *notes, ErrorDetail *detail)
{
    char *text = calloc(1, NOTES_BYTES_MAX + 1);
    if (!text) return error_say(detail, ERROR_OUT_OF_MEMORY, "no memory to read the crash notes");
    ssize_t size = pread(notes->file, text, NOTES_BYTES_MAX, 0);
    Error error =
        size < 0 ? error_say_errno(detail, errno, "cannot read %s", notes->path.text) : ERROR_NONE;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); !error && line;
         line = strtok_r(NULL, "\n", &rest))
        note_read(notes, line);
    free(text);
    return error;
}

Error crash_notes_open(const char *directory, ErrorDetail *detail, CrashNotes *out)
{
    *out = (CrashNotes){.path = store_path(directory, STORE_FILE_CRASHES)};
    int flags = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
    out->file = open(out->path.text, flags, 0600);
    if (out->file < 0) return error_say_errno(detail, errno, "cannot open %s", out->path.text);
    Error error = notes_read(out, detail);
    if (error) crash_notes_close(out, /* is_removed= */ false);
    return error;
}

// Appends a number in decimal to `text`. May be called in a signal handler.
static size_t add_number(char *text, size_t size, uint64_t number)
{
    char digits[20];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (count > 0)
        text[size++] = digits[--count];
    return size;
}

static size_t add_text(char *text, size_t size, const char *added)
{
    for (; *added && size < LINE_BYTES_MAX - 24; added++)
        text[size++] = *added;
    return size;
}

static void add_note(int number)
{
    char line[LINE_BYTES_MAX];
    struct timespec now = {.tv_sec = 0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    size_t size = add_text(line, 0, watch.beginning);
    size = add_number(line, size, (uint64_t)now.tv_sec);
    size = add_text(line, size, " signal ");
    size = add_number(line, size, (uint64_t)number);
    size = add_text(line, size, " in ");
    size = add_text(line, size, activity);
    line[size++] = '\n';
    ssize_t written = write(watch.file, line, size);
    (void)written; // the process ends in any case
}

static void on_crash(int number, siginfo_t *info, void *context)
{
    (void)context;
    // The kernel's own signals have a positive code. abort and raise send theirs to this process.
    bool is_ours = info->si_code > 0 || info->si_pid == getpid();
    if (is_ours && !atomic_flag_test_and_set(&watch.is_noted)) add_note(number);
    // It is blocked until this returns, and then ends the process.
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

void crash_notes_watch(const CrashNotes *notes)
{
    struct timespec now = {.tv_sec = 0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    snprintf(watch.beginning, sizeof(watch.beginning), "started %lld ended ",
             (long long)now.tv_sec);
    watch.file = notes->file;
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO};
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < sizeof(SIGNALS) / sizeof(*SIGNALS); i++)
        (void)sigaction(SIGNALS[i], &action, NULL);
}

void crash_notes_ignore(void)
{
    for (size_t i = 0; i < sizeof(SIGNALS) / sizeof(*SIGNALS); i++)
        (void)signal(SIGNALS[i], SIG_DFL);
}

void crash_notes_forget(CrashNotes *notes)
{
    if (notes->file >= 0 && ftruncate(notes->file, 0) != 0) (void)unlink(notes->path.text);
    notes->is_loop = false;
    notes->count = 0;
}

void crash_notes_close(CrashNotes *notes, bool is_removed)
{
    if (notes->file < 0) return;
    if (is_removed) (void)unlink(notes->path.text);
    if (watch.file == notes->file) crash_notes_ignore();
    watch.file = -1;
    close(notes->file);
    notes->file = -1;
}
