// Reader slots, as LMDB lists them.

#include "kv/durable/reader_slots.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "kv/durable/data_file_fields.h"

unsigned reader_slots_clear_dead(DataFile *file)
{
    if (data_file_is_of_parent(file)) return 0;
    int count = 0;
    if (mdb_reader_check(file->lmdb, &count)) return 0;
    return (unsigned)count;
}

typedef struct Survey {
    ReaderSlots slots;
    bool has_pin; // of the flusher, which is no reader
    uint64_t pin_txn;
    long pid;
} Survey;

// Takes one line of LMDB's list: pid, thread, and the transaction or "-". Headings do not parse.
static int survey_line(const char *line, void *context)
{
    Survey *survey = context;
    ReaderSlots *slots = &survey->slots;
    uint64_t txn;
    long pid;
    if (sscanf(line, "%ld %*x %" SCNu64, &pid, &txn) != 2) return 0;
    if (survey->has_pin && txn == survey->pin_txn && pid == survey->pid) {
        survey->has_pin = false; // another slot like it is a reader's
        return 0;
    }
    if (slots->count++ == 0 || txn < slots->oldest_txn) {
        slots->oldest_txn = txn;
        slots->oldest_pid = pid;
    }
    return 0;
}

void reader_slots_survey(DataFile *file, ReaderSlots *out)
{
    Survey survey = {.pin_txn = atomic_load(&file->pin_txn), .pid = getpid()};
    survey.has_pin = survey.pin_txn > 0;
    if (!data_file_is_of_parent(file)) (void)mdb_reader_list(file->lmdb, survey_line, &survey);
    *out = survey.slots;
}
