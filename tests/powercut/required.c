// What the disk must hold after a cut. There are three witnesses:
//
// - the marks, of what the engine has promised;
// - the flushes of the log: when one has ended, all is there whose records were appended before it
//   began. Segments are flushed in their order, so those before this one are on the disk, too;
// - the flushes of flushed.mdb: when one has ended, its state must be there or a newer one. That is
//   what it names, and no less than all that was acknowledged when the flush before it had ended,
//   whatever it names.

#include <stdlib.h>
#include <string.h>

#include "kv/durable/flush_note.h"
#include "log/record.h"
#include "powercut_day.h"

typedef struct Required {
    const Day *day;
    size_t count;        // writes
    size_t acknowledged; // since the store was opened, in this life of the process …
    size_t before_flush; // … when the last flush had ended
    size_t numbered;     // the mark from which on transactions' numbers are comparable
    bool has_failed;     // a flush, since then: the last state is written once more
    bool is_noted[RECORD_NODES_MAX];
} Required;

static void require(Required *required, size_t count)
{
    if (count > required->count) required->count = count;
}

static size_t writes_of(uint64_t mark)
{
    return (size_t)((mark & ~(DAY_FLUSHED | DAY_OPENED)) >> DAY_TXN_BITS);
}

static void take_mark(Required *required, size_t index)
{
    uint64_t mark = required->day->recording.records[index].number;
    if (mark & (DAY_OPENED | DAY_OPENING)) required->numbered = index;
    if (mark & DAY_OPENING) return;
    required->acknowledged = writes_of(mark);
    if (mark & DAY_FLUSHED) require(required, required->acknowledged);
    if (!(mark & DAY_OPENED)) return;
    required->before_flush = required->acknowledged;
    required->has_failed = false;
}

// The note that is flushed is the last that was written. False: the file was being made.
static bool note_of(const Recording *recording, const Record *flush, FlushNote *out)
{
    size_t i = flush->begun;
    while (i > 0 && recording->records[i - 1].node != flush->node)
        i--;
    const Record *written = i > 0 ? &recording->records[i - 1] : NULL;
    if (!written || written->kind != RECORD_WRITE || written->size != sizeof(FlushNote))
        return false;
    memcpy(out, written->bytes, sizeof(*out));
    return true;
}

static void take_flush(Required *required, size_t index)
{
    const Recording *recording = &required->day->recording;
    const Record *flush = &recording->records[index];
    FlushNote note;
    if (!required->is_noted[flush->node] || !note_of(recording, flush, &note)) return;
    for (size_t i = required->numbered; i < index && note.state == FLUSH_NOTE_FLUSHED; i++) {
        const Record *record = &recording->records[i];
        bool is_of_writes = record->kind == RECORD_MARK && !(record->number & DAY_OPENING);
        if (!is_of_writes || (uint32_t)record->number > note.txn_id) continue;
        require(required, writes_of(record->number));
    }
    if (!required->has_failed) require(required, required->before_flush);
    required->before_flush = required->acknowledged;
}

static bool is_log_header(const Recording *recording, const Record *record)
{
    return record->kind == RECORD_WRITE && record->node != RECORD_NO_NODE &&
           recording->is_log[record->node] && record->size == LOG_HEADER_BYTES &&
           memcmp(record->bytes, "TLOG", 4) == 0;
}

// Requires the writes that were acknowledged before the record of the log at `last` was followed
// by another one.
static void take_log_flush(Required *required, size_t index)
{
    const Recording *recording = &required->day->recording;
    const Record *flush = &recording->records[index];
    size_t last = flush->begun;
    while (last > required->numbered && !(recording->records[last].node == flush->node &&
                                          is_log_header(recording, &recording->records[last])))
        last--;
    if (last <= required->numbered) return;
    for (size_t i = required->numbered; i < index; i++) {
        const Record *record = &recording->records[i];
        if (i > last && is_log_header(recording, record)) return;
        bool is_of_writes = record->kind == RECORD_MARK && !(record->number & DAY_OPENING);
        if (is_of_writes) require(required, writes_of(record->number));
    }
}

void day_find_required(Day *day)
{
    static Required required;
    size_t count = day->recording.count;
    required = (Required){.day = day, .count = day->held};
    day->required = calloc(count + 1, sizeof(*day->required));
    CHECK(day->required != NULL);
    for (size_t i = 0; i < count; i++) {
        const Record *record = &day->recording.records[i];
        const RecordEntry *named = &record->entries[0];
        day->required[i] = required.count;
        if (record->kind == RECORD_NAME && strcmp(named->name, "flushed.mdb") == 0 &&
            named->node != RECORD_NO_NODE)
            required.is_noted[named->node] = true;
        if (record->kind == RECORD_MARK) take_mark(&required, i);
        if (record->kind == RECORD_FLUSH_FAILED) required.has_failed = true;
        bool is_flushed = record->kind == RECORD_FLUSH_END && record->node != RECORD_NO_NODE;
        if (is_flushed) take_flush(&required, i);
        if (is_flushed && day->recording.is_log[record->node]) take_log_flush(&required, i);
    }
    day->required[count] = required.count;
}
