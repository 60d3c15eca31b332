// Entries that follow each other, child after parent, go in one batch (batch_sender.h). While
// batches are under way, the next one is read and mapped. An entry that names another one waits
// until the ID of that one in the store is known.

#include "importers/pi/pi_add.h"

#include <string.h>

#include "importers/field.h"
#include "importers/pi/pi_entry.h"
#include "importers/pi/pi_known.h"

enum { BATCH_LINE_BYTES_MAX = 2 * 1024 * 1024 }; // or one entry that is larger

// Waits for the oldest batch under way, notes its result and releases it.
static int settle_one(PiRun *run)
{
    Batch *batch = batch_sender_take(&run->sender);
    if (!batch) return STATUS_OK;
    if (batch->code) return pi_run_fail_status(run, batch->entries[0], &batch->status);
    PiEntry *entries = run->file.entries;
    for (size_t i = 0; i < batch->count && i < batch->reply->n_receipts; i++) {
        snprintf(entries[batch->entries[i]].store_id, STORE_ID_BYTES, "%s",
                 batch->reply->receipts[i]->id);
    }
    snprintf(run->last, sizeof(run->last), "%s",
             entries[batch->entries[batch->count - 1]].store_id);
    run->appended += batch->count;
    atomic_fetch_add(&run->importer->report.entries_new, batch->count);
    run->importer->report.bytes_done += batch->line_bytes;
    batch_sender_release(&run->sender);
    return STATUS_OK;
}

static int settle_all(PiRun *run)
{
    int code = STATUS_OK;
    while (!code && batch_sender_last(&run->sender))
        code = settle_one(run);
    return code;
}

// Sets the parent of the batch: an entry whose ID is known, or the last entry of the batch that is
// under way before it. Waits for any other.
static int place_batch(PiRun *run)
{
    Batch *batch = run->batch;
    uint32_t parent = run->file.entries[batch->entries[0]].parent;
    const Batch *before = batch_sender_last(&run->sender);
    batch->is_below_previous = before && parent == before->entries[before->count - 1];
    bool is_pending = parent != ENTRY_NONE && !*run->file.entries[parent].store_id;
    if (is_pending && !batch->is_below_previous) {
        int code = settle_all(run);
        if (code) return code;
        before = NULL;
    }
    if (parent != ENTRY_NONE && !batch->is_below_previous) {
        memcpy(batch->parent_id, run->file.entries[parent].store_id, STORE_ID_BYTES);
    }
    if (!before) return STATUS_OK;
    const External *last = before->messages[before->count - 1]->external;
    External *previous = arena_new(&batch->arena, External);
    if (!previous) return pi_run_fail(run, arena_error(&batch->arena), NULL);
    tine__v1__external__init(previous);
    previous->source = last->source;
    previous->id = arena_string(&batch->arena, slice_of(last->id));
    if (!previous->id) return pi_run_fail(run, arena_error(&batch->arena), NULL);
    batch->previous = previous;
    return STATUS_OK;
}

// Sends the batch and begins another.
static int flush(PiRun *run)
{
    if (run->batch->count == 0) return STATUS_OK;
    int code = batch_sender_is_full(&run->sender) ? settle_one(run) : STATUS_OK;
    if (!code) code = place_batch(run);
    if (code) return code;
    Error error = batch_sender_send(&run->sender);
    if (error) return pi_run_fail(run, error, NULL);
    run->batch = batch_sender_filling(&run->sender);
    return STATUS_OK;
}

// Returns the ID in the store of an entry that another one names; NULL if it is not known.
static const char *store_id(const PiRun *run, uint32_t entry, bool *out_is_pending)
{
    const PiEntry *named = &run->file.entries[entry];
    if (*named->store_id) return named->store_id;
    *out_is_pending |= named->is_queued;
    return NULL;
}

// Replaces the target of an entry by its ID in the store, if it is an entry before this one.
static int resolve_target(PiRun *run, NewMessage *message, char *target, bool *out_is_pending)
{
    uint32_t entry = *target ? pi_file_find(&run->file, target) : ENTRY_NONE;
    message->target_id = target;
    if (entry == ENTRY_NONE) return STATUS_OK;
    const char *id = store_id(run, entry, out_is_pending);
    if (!id) return STATUS_OK;
    message->target_id = arena_string(&run->batch->arena, slice_of(id));
    return message->target_id ? STATUS_OK : pi_run_fail(run, arena_error(&run->batch->arena), NULL);
}

static bool is_ancestor(const PiFile *file, uint32_t ancestor, uint32_t entry)
{
    uint32_t at = file->entries[entry].parent;
    while (at != ENTRY_NONE && at != ancestor)
        at = file->entries[at].parent;
    return at != ENTRY_NONE;
}

// Sets where the window of a compaction begins: at its first kept entry, if that is an ancestor.
// Otherwise nothing before the compaction is kept.
static void resolve_first_kept(PiRun *run, uint32_t entry, const PiReferences *references,
                               Marker *marker, bool *out_is_pending)
{
    const PiFile *file = &run->file;
    uint32_t kept = ENTRY_NONE;
    if (references->has_first_kept) kept = pi_file_find(file, references->first_kept_id);
    if (references->first_kept_place >= 0 && file->version < 2) {
        kept = pi_file_at_place(file, references->first_kept_place);
    }
    if (kept == ENTRY_NONE || !is_ancestor(file, kept, entry)) return;
    if (!*marker->first_kept_external) {
        marker->first_kept_external =
            field_name(&run->batch->arena, (char *)(uintptr_t)pi_file_id(file, kept));
    }
    uint32_t cut_off = file->entries[kept].parent;
    marker->keep_all = cut_off == ENTRY_NONE;
    if (marker->keep_all) return;
    const char *id = store_id(run, cut_off, out_is_pending);
    if (id) marker->before_message_id = (char *)(uintptr_t)id;
}

// Reads and maps an entry. Its original is the entry with everything around it.
static Error map_entry(PiRun *run, uint32_t entry, NewMessage **out, PiReferences *references)
{
    Batch *batch = run->batch;
    Slice bytes, original;
    const PiEntry *read = &run->file.entries[entry];
    Error error = pi_file_source(&run->file, entry, &bytes);
    if (!error) error = arena_copy(&batch->arena, bytes, &original);
    if (error) return error;
    size_t before = entry > 0 ? 0 : (size_t)(read->offset - run->file.header_end);
    PiEntrySource source = {.json = slice(original.bytes + before, read->bytes),
                            .time_ms = run->time_ms,
                            .version = run->file.version,
                            .position = read->is_ahead ? entry : UINT32_MAX};
    source.external_id = pi_external_id(&batch->arena, &run->file, entry);
    if (!source.external_id) return arena_error(&batch->arena);
    NewOriginal *kept = &batch->originals[batch->count];
    tine__v1__new_original__init(kept);
    if (entry + 1 < run->file.count) { // the last one's line is stored at the very end
        kept->content.data = (uint8_t *)(uintptr_t)original.bytes;
        kept->content.len = original.size;
    }
    batch->original_list[batch->count] = kept;
    return pi_entry_map(&batch->arena, &source, out, references);
}

static int resolve(PiRun *run, uint32_t entry, NewMessage *message, const PiReferences *references,
                   bool *out_is_pending)
{
    *out_is_pending = false;
    int code = resolve_target(run, message, references->target_id, out_is_pending);
    if (!code && message->marker) {
        resolve_first_kept(run, entry, references, message->marker, out_is_pending);
    }
    return code;
}

static bool fits(const PiRun *run, uint32_t entry)
{
    const Batch *batch = run->batch;
    if (batch->count == 0) return true;
    const PiEntry *next = &run->file.entries[entry];
    return batch->count < BATCH_COUNT_MAX && next->parent == batch->entries[batch->count - 1] &&
           batch->line_bytes + next->bytes <= BATCH_LINE_BYTES_MAX;
}

static int add(PiRun *run, uint32_t entry)
{
    int code = fits(run, entry) ? STATUS_OK : flush(run);
    NewMessage *message = NULL;
    PiReferences references;
    if (code) return code;
    Error error = map_entry(run, entry, &message, &references);
    if (error) return pi_run_fail(run, error, NULL);
    bool is_pending = false;
    code = resolve(run, entry, message, &references, &is_pending);
    if (!code && is_pending) {
        code = flush(run); // the named entry is in this batch or under way
        if (!code) code = settle_all(run);
        return code ? code : add(run, entry);
    }
    if (code) return code;
    error = pi_model_note(&run->model, entry, message->model, /* is_new= */ true);
    if (error) return pi_run_fail(run, error, NULL);
    Batch *batch = run->batch;
    run->time_ms = message->created_at;
    run->file.entries[entry].is_queued = true;
    batch->entries[batch->count] = entry;
    batch->messages[batch->count++] = message;
    batch->line_bytes += run->file.entries[entry].bytes;
    return STATUS_OK;
}

int pi_add_all(PiRun *run)
{
    int code = STATUS_OK;
    for (uint32_t i = 0; i < run->file.count && !code; i++) {
        uint32_t entry = run->file.order[i];
        PiEntry *known = &run->file.entries[entry];
        if (!*known->store_id) {
            code = add(run, entry);
            continue;
        }
        atomic_fetch_add(&run->importer->report.entries_known, 1);
        run->importer->report.bytes_done += known->bytes;
        bool is_last = entry + 1 == run->file.count;
        if (!known->has_original && !is_last) code = pi_run_put_original(run, entry);
    }
    if (!code) code = flush(run);
    return code ? code : settle_all(run);
}
