// The import: the session first, then its entries. Entries that follow each other, child after
// parent, go in one batch (pi_batch.h); while batches are under way the next one is read and
// mapped. An entry that names another one whose id in the store is not known yet waits for it.

#include "pi/pi_import.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "pi/pi_batch.h"
#include "pi/pi_entry.h"
#include "pi/pi_file.h"
#include "pi/pi_json.h"
#include "pi/pi_known.h"
#include "progress.h"
#include "text/json.h"
#include "text/utf8.h"

enum { BATCH_LINE_BYTES_MAX = 2 * 1024 * 1024 }; // or one entry that is larger

typedef struct PiRun {
    Import *import;
    PiFile file;
    const char *name; // of the file
    char session[ID_BYTES];
    char *header;     // of the file, as the store has it
    char version[16]; // of the file, as text
    atomic_uint_fast64_t bytes_done;

    Arena arena; // of the session's own call
    PiSender sender;
    PiBatch *batch; // of the sender's: the one that is being filled

    uint64_t appended;
    int64_t time_ms;     // of the entry before
    char last[ID_BYTES]; // the head: the last entry appended
    bool is_finished;    // by an import before this one: the last entry's line tells
    bool is_rewritten;   // the file's header is another than the store's
    PiSettings settings;
} PiRun;

static int fail(const PiRun *run, Error error, const ErrorDetail *detail)
{
    return cli_say(EXIT_FAILED, "%s: %s", run->name,
                   detail && *detail->text ? detail->text : error_text(error));
}

static int fail_status(const PiRun *run, uint32_t entry, const TineStatus *status)
{
    int code = entry == PI_NONE ? cli_say(EXIT_FAILED, "%s: %s", run->name, status->message)
                                : cli_say(EXIT_FAILED, "%s: line %u or soon after: %s", run->name,
                                          run->file.entries[entry].line, status->message);
    return exit_code_of(status->code) == EXIT_UNAVAILABLE ? EXIT_UNAVAILABLE : code;
}

static int fail_call(const PiRun *run, uint32_t entry)
{
    return fail_status(run, entry, &run->import->cli->status);
}

static void say_problems(const PiRun *run)
{
    const PiFile *file = &run->file;
    for (size_t i = 0; i < file->problem_count && i < PI_PROBLEMS_MAX; i++) {
        fprintf(stderr, "tine: %s: line %zu: %s\n", run->name, file->problems[i].line,
                file->problems[i].what);
    }
    if (file->problem_count > PI_PROBLEMS_MAX) {
        fprintf(stderr, "tine: %s: and %zu more of such lines\n", run->name,
                file->problem_count - PI_PROBLEMS_MAX);
    }
}

// Notes what the oldest batch under way has become, and gives its memory back.
static int settle_one(PiRun *run)
{
    PiBatch *batch = pi_sender_take(&run->sender);
    if (!batch) return EXIT_OK;
    if (batch->code) return fail_status(run, batch->entries[0], &batch->status);
    PiEntry *entries = run->file.entries;
    for (size_t i = 0; i < batch->count && i < batch->reply->n_receipts; i++) {
        snprintf(entries[batch->entries[i]].store_id, PI_STORE_ID_BYTES, "%s",
                 batch->reply->receipts[i]->id);
    }
    snprintf(run->last, sizeof(run->last), "%s",
             entries[batch->entries[batch->count - 1]].store_id);
    run->appended += batch->count;
    atomic_fetch_add(&run->import->entries_new, batch->count);
    run->bytes_done += batch->line_bytes;
    pi_sender_release(&run->sender);
    return EXIT_OK;
}

static int settle_all(PiRun *run)
{
    int code = EXIT_OK;
    while (!code && pi_sender_last(&run->sender))
        code = settle_one(run);
    return code;
}

// Says where the batch goes: below an entry whose id is known, or below the last one of the batch
// that is under way before it. Any other one is waited for.
static int place_batch(PiRun *run)
{
    PiBatch *batch = run->batch;
    uint32_t parent = run->file.entries[batch->entries[0]].parent;
    const PiBatch *before = pi_sender_last(&run->sender);
    batch->is_below_previous = before && parent == before->entries[before->count - 1];
    bool is_pending = parent != PI_NONE && !*run->file.entries[parent].store_id;
    if (is_pending && !batch->is_below_previous) {
        int code = settle_all(run);
        if (code) return code;
        before = NULL;
    }
    if (parent != PI_NONE && !batch->is_below_previous) {
        memcpy(batch->parent_id, run->file.entries[parent].store_id, PI_STORE_ID_BYTES);
    }
    if (!before) return EXIT_OK;
    const External *last = before->messages[before->count - 1]->external;
    External *previous = arena_new(&batch->arena, External);
    if (!previous) return fail(run, arena_error(&batch->arena), NULL);
    tine__v1__external__init(previous);
    previous->source = last->source;
    previous->id = arena_string(&batch->arena, slice_of(last->id));
    if (!previous->id) return fail(run, arena_error(&batch->arena), NULL);
    batch->previous = previous;
    return EXIT_OK;
}

// Hands the batch over, and begins another.
static int flush(PiRun *run)
{
    if (run->batch->count == 0) return EXIT_OK;
    int code = pi_sender_is_full(&run->sender) ? settle_one(run) : EXIT_OK;
    if (!code) code = place_batch(run);
    if (code) return code;
    Error error = pi_sender_send(&run->sender);
    if (error) return fail(run, error, NULL);
    run->batch = pi_sender_filling(&run->sender);
    return EXIT_OK;
}

// Of an entry that is there already, without its original or with one that has grown since.
static int put_original(PiRun *run, uint32_t entry)
{
    Cli *cli = run->import->cli;
    Slice bytes;
    PutOriginalRequest request = PUT_ORIGINAL_REQUEST__INIT;
    CLEANUP(message_freep) PutOriginalResponse *reply = NULL;
    Error error = pi_file_source(&run->file, entry, &bytes);
    if (error) return fail(run, error, NULL);
    request.message_id = run->file.entries[entry].store_id;
    request.content.data = (uint8_t *)(uintptr_t)bytes.bytes;
    request.content.len = bytes.size;
    int status = tine_put_original(cli->tine, &cli->call, &request, &reply);
    return status ? fail_call(run, entry) : EXIT_OK;
}

// The store's id of an entry that another one names; NULL if it is not known.
static const char *store_id(const PiRun *run, uint32_t entry, bool *out_is_pending)
{
    const PiEntry *named = &run->file.entries[entry];
    if (*named->store_id) return named->store_id;
    *out_is_pending |= named->is_queued;
    return NULL;
}

// What an entry names, if it is an entry of the file that comes before it, as the store has it.
static int resolve_target(PiRun *run, NewMessage *message, char *target, bool *out_is_pending)
{
    uint32_t entry = *target ? pi_file_find(&run->file, target) : PI_NONE;
    message->target_id = target;
    if (entry == PI_NONE) return EXIT_OK;
    const char *id = store_id(run, entry, out_is_pending);
    if (!id) return EXIT_OK;
    message->target_id = arena_string(&run->batch->arena, slice_of(id));
    return message->target_id ? EXIT_OK : fail(run, arena_error(&run->batch->arena), NULL);
}

static bool is_ancestor(const PiFile *file, uint32_t ancestor, uint32_t entry)
{
    uint32_t at = file->entries[entry].parent;
    while (at != PI_NONE && at != ancestor)
        at = file->entries[at].parent;
    return at != PI_NONE;
}

// Where the window of a compaction begins: at the first entry kept, if that is an ancestor; else
// nothing before the compaction is kept.
static void resolve_first_kept(PiRun *run, uint32_t entry, const PiReferences *references,
                               Marker *marker, bool *out_is_pending)
{
    const PiFile *file = &run->file;
    uint32_t kept = PI_NONE;
    if (references->has_first_kept) kept = pi_file_find(file, references->first_kept_id);
    if (references->first_kept_place >= 0 && file->version < 2) {
        kept = pi_file_at_place(file, references->first_kept_place);
    }
    if (kept == PI_NONE || !is_ancestor(file, kept, entry)) return;
    if (!*marker->first_kept_external) {
        marker->first_kept_external =
            pi_name(&run->batch->arena, (char *)(uintptr_t)pi_file_id(file, kept));
    }
    uint32_t cut_off = file->entries[kept].parent;
    marker->keep_all = cut_off == PI_NONE;
    if (marker->keep_all) return;
    const char *id = store_id(run, cut_off, out_is_pending);
    if (id) marker->before_message_id = (char *)(uintptr_t)id;
}

// Reads an entry with its surroundings: the original is all of them, the entry a part.
static Error map_entry(PiRun *run, uint32_t entry, NewMessage **out, PiReferences *references)
{
    PiBatch *batch = run->batch;
    Slice bytes, original;
    const PiEntry *read = &run->file.entries[entry];
    Error error = pi_file_source(&run->file, entry, &bytes);
    if (!error) error = arena_copy(&batch->arena, bytes, &original);
    if (error) return error;
    size_t before = entry > 0 ? 0 : (size_t)(read->offset - run->file.header_end);
    PiEntrySource source = {.json = slice(original.bytes + before, read->bytes),
                            .time_ms = run->time_ms,
                            .version = run->file.version};
    source.external_id = pi_external_id(&batch->arena, &run->file, entry);
    if (!source.external_id) return arena_error(&batch->arena);
    NewOriginal *kept = &batch->originals[batch->count];
    tine__v1__new_original__init(kept);
    if (entry + 1 < run->file.count) { // the last one's line is for `finish`
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

static int note_settings(PiRun *run, uint32_t entry, const NewMessage *message)
{
    PiSaid said = {entry, /* is_new= */ true, message->kind, message->text, message->model};
    Error error = pi_settings_note(&run->settings, &said);
    return error ? fail(run, error, NULL) : EXIT_OK;
}

static bool fits(const PiRun *run, uint32_t entry)
{
    const PiBatch *batch = run->batch;
    if (batch->count == 0) return true;
    const PiEntry *next = &run->file.entries[entry];
    return batch->count < PI_BATCH_COUNT_MAX && next->parent == batch->entries[batch->count - 1] &&
           batch->line_bytes + next->bytes <= BATCH_LINE_BYTES_MAX;
}

static int add(PiRun *run, uint32_t entry)
{
    int code = fits(run, entry) ? EXIT_OK : flush(run);
    NewMessage *message = NULL;
    PiReferences references;
    if (code) return code;
    Error error = map_entry(run, entry, &message, &references);
    if (error) return fail(run, error, NULL);
    bool is_pending = false;
    code = resolve(run, entry, message, &references, &is_pending);
    if (!code && is_pending) {
        code = flush(run); // what is named is in there, or under way
        if (!code) code = settle_all(run);
        return code ? code : add(run, entry);
    }
    if (!code) code = note_settings(run, entry, message);
    PiBatch *batch = run->batch;
    run->time_ms = message->created_at;
    run->file.entries[entry].is_queued = true;
    batch->entries[batch->count] = entry;
    batch->messages[batch->count++] = message;
    batch->line_bytes += run->file.entries[entry].bytes;
    return code;
}

static int add_all(PiRun *run)
{
    int code = EXIT_OK;
    for (uint32_t i = 0; i < run->file.count && !code; i++) {
        uint32_t entry = run->file.order[i];
        PiEntry *known = &run->file.entries[entry];
        if (!*known->store_id) {
            code = add(run, entry);
            continue;
        }
        atomic_fetch_add(&run->import->entries_known, 1);
        run->bytes_done += known->bytes;
        bool is_last = entry + 1 == run->file.count;
        if (!known->has_original && !is_last) code = put_original(run, entry);
    }
    if (!code) code = flush(run);
    return code ? code : settle_all(run);
}

// The header as the store can hold it; "" if it cannot. White space behind it is JSON's, and has
// nobody else to hold it where there are no entries. Lives in the arena.
static int set_header(PiRun *run)
{
    PiFile *file = &run->file;
    Slice header = slice_of(file->header), rest = {NULL, 0};
    Error error = file->count > 0 ? ERROR_NONE : pi_file_rest(file, &rest);
    for (size_t i = 0; i < rest.size; i++) {
        if (!memchr(" \t\r\n", rest.bytes[i], 4)) rest.size = 0; // other lines that are no entries
    }
    char *text = error ? NULL : arena_alloc(&run->arena, header.size + rest.size + 1);
    if (!text) return fail(run, error ? error : arena_error(&run->arena), NULL);
    memcpy(text, header.bytes, header.size);
    if (rest.size > 0) memcpy(text + header.size, rest.bytes, rest.size);
    text[header.size + rest.size] = '\0';
    bool is_held = header.size + rest.size <= SESSION_DATA_JSON_BYTES_MAX &&
                   utf8_is_valid(header) && json_is_valid(header, NULL);
    if (!is_held) *text = '\0';
    run->header = text;
    return EXIT_OK;
}

// The header: where the session belongs, and when it began.
static int fill_session(PiRun *run, NewSession *session)
{
    enum { TIMESTAMP, CWD, PARENT, COUNT };
    static const char *const NAMES[] = {"timestamp", "cwd", "parentSession"};
    static char here[PATH_BYTES_MAX + 1];
    Slice values[COUNT], header = slice_of(run->file.header);
    const char *directory = run->import->project_dir;
    if (pi_members(header, NAMES, COUNT, values, NULL)) return fail(run, ERROR_OUT_OF_MEMORY, NULL);
    char *cwd = pi_text(&run->arena, values[CWD]);
    session->source_parent = pi_name(&run->arena, pi_text(&run->arena, values[PARENT]));
    session->created_at = run->time_ms = pi_time_ms(values[TIMESTAMP]);
    if (!cwd || !session->source_parent) return fail(run, arena_error(&run->arena), NULL);
    session->project_dir = directory ? (char *)(uintptr_t)directory : cwd;
    if (!*session->project_dir && getcwd(here, sizeof(here))) session->project_dir = here;
    session->data_json = run->header;
    session->data_version = run->version;
    return EXIT_OK;
}

static int make_session(PiRun *run, External *external)
{
    Cli *cli = run->import->cli;
    NewSession session = NEW_SESSION__INIT;
    ModelRef model = MODEL_REF__INIT;
    CreateSessionRequest request = CREATE_SESSION_REQUEST__INIT;
    CLEANUP(message_freep) CreateSessionResponse *reply = NULL;
    int code = fill_session(run, &session);
    if (code) return code;
    static char unknown[] = PI_MODEL_UNKNOWN;
    model.provider = model.name = unknown;
    session.model = &model;
    session.external = external;
    request.session = &session;
    if (tine_create_session(cli->tine, &cli->call, &request, &reply)) {
        return fail_call(run, PI_NONE);
    }
    snprintf(run->session, sizeof(run->session), "%s", reply->session->id);
    Error error = pi_settings_begin(&run->settings, reply->session);
    return error ? fail(run, error, NULL) : EXIT_OK;
}

// A session that is there: what is known of it, and whether the file is still the one it came from.
// pi writes a file anew when it brings it to a later version; then all lines are other ones.
static int look_at_session(PiRun *run)
{
    Cli *cli = run->import->cli;
    PiFile *file = &run->file;
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    CLEANUP(message_freep) GetSessionResponse *reply = NULL;
    request.session_id = run->session;
    if (tine_get_session(cli->tine, &cli->call, &request, &reply)) return fail_call(run, PI_NONE);
    const Session *session = reply->session;
    snprintf(run->last, sizeof(run->last), "%s", session->head_id);
    if (file->makes_ids && strcmp(session->data_version, "1") != 0) {
        return cli_say(EXIT_FAILED, "%s: the store has a later version of it already", run->name);
    }
    Error error = pi_settings_begin(&run->settings, session);
    if (error) return fail(run, error, NULL);
    if (pi_known(cli, run->session, file, &run->settings)) return fail_call(run, PI_NONE);
    run->is_rewritten = strcmp(session->data_version, run->version) != 0 ||
                        strcmp(session->data_json, run->header) != 0;
    for (uint32_t i = 0; run->is_rewritten && i < file->count; i++) {
        file->entries[i].has_original = false;
    }
    run->is_finished = file->count > 0 && file->entries[file->count - 1].has_original;
    return EXIT_OK;
}

static int find_or_make_session(PiRun *run)
{
    Cli *cli = run->import->cli;
    static char source[] = PI_SOURCE;
    External external = EXTERNAL__INIT;
    ResolveSessionRequest request = RESOLVE_SESSION_REQUEST__INIT;
    CLEANUP(message_freep) ResolveSessionResponse *reply = NULL;
    external.source = source;
    external.id = pi_name(&run->arena, run->file.id);
    if (!external.id) return fail(run, arena_error(&run->arena), NULL);
    request.by_case = TINE__V1__RESOLVE_SESSION_REQUEST__BY_EXTERNAL;
    request.external = &external;
    if (tine_resolve_session(cli->tine, &cli->call, &request, &reply)) {
        return fail_call(run, PI_NONE);
    }
    if (reply->n_sessions == 0) {
        atomic_fetch_add(&run->import->sessions_new, 1);
        return make_session(run, &external);
    }
    atomic_fetch_add(&run->import->sessions_known, 1);
    snprintf(run->session, sizeof(run->session), "%s", reply->sessions[0]->id);
    return look_at_session(run);
}

// pi's leaf is the file's last entry; where parents came late that is not what was appended last.
static int move_head(PiRun *run)
{
    Cli *cli = run->import->cli;
    RewindSessionRequest request = REWIND_SESSION_REQUEST__INIT;
    CLEANUP(message_freep) RewindSessionResponse *reply = NULL;
    if (run->file.count == 0) return EXIT_OK;
    request.message_id = run->file.entries[run->file.count - 1].store_id;
    request.session_id = run->session;
    if (strcmp(request.message_id, run->last) == 0) return EXIT_OK;
    int status = tine_rewind_session(cli->tine, &cli->call, &request, &reply);
    return status ? fail_call(run, PI_NONE) : EXIT_OK;
}

static int update_session(PiRun *run)
{
    Cli *cli = run->import->cli;
    const PiSettings *settings = &run->settings;
    SessionField mask[3];
    UpdateSessionRequest request = UPDATE_SESSION_REQUEST__INIT;
    CLEANUP(message_freep) UpdateSessionResponse *reply = NULL;
    request.session_id = run->session;
    request.mask = mask;
    if (settings->title && settings->sets_title) {
        request.title = settings->title;
        mask[request.n_mask++] = SESSION_FIELD_TITLE;
    }
    ModelRef model = MODEL_REF__INIT;
    if (settings->model && settings->sets_model) {
        model.provider = settings->provider;
        model.name = settings->model;
        request.model = &model;
        mask[request.n_mask++] = SESSION_FIELD_MODEL;
    }
    if (run->is_rewritten) {
        request.data_json = run->header;
        request.data_version = run->version;
        mask[request.n_mask++] = SESSION_FIELD_DATA_JSON;
    }
    if (request.n_mask == 0) return EXIT_OK;
    int status = tine_update_session(cli->tine, &cli->call, &request, &reply);
    return status ? fail_call(run, PI_NONE) : EXIT_OK;
}

// What follows from all entries together. The last entry's line is put behind everything else, so
// whoever finds it there knows that nothing is left to do, however this import ends.
static int finish(PiRun *run)
{
    int code = run->is_finished ? EXIT_OK : move_head(run);
    if (!code && !run->is_finished) code = update_session(run);
    return code || run->file.count == 0 ? code : put_original(run, run->file.count - 1);
}

// The last entry's bytes reach to the file's end, which may have moved since they were stored.
static void renew_last(PiRun *run)
{
    uint32_t last = run->file.count;
    while (last > 0 && !*run->file.entries[last - 1].store_id)
        last--;
    if (last > 0) run->file.entries[last - 1].has_original = false;
}

static int import_opened(PiRun *run)
{
    int code = set_header(run);
    if (!code) code = find_or_make_session(run);
    if (!code) {
        renew_last(run);
        Error error = pi_sender_open(&run->sender, run->import->cli, run->session);
        if (error) return fail(run, error, NULL);
        run->batch = pi_sender_filling(&run->sender);
        code = add_all(run);
    }
    pi_sender_close(&run->sender);
    return code ? code : finish(run);
}

// A file that cannot be read twice is copied to one that can.
static FILE *seekable(FILE *file)
{
    char bytes[64 * 1024];
    if (fseeko(file, 0, SEEK_SET) == 0) return file;
    FILE *copy = tmpfile();
    for (size_t size; copy && (size = fread(bytes, 1, sizeof(bytes), file)) > 0;) {
        if (fwrite(bytes, 1, size, copy) != size) {
            fclose(copy);
            return NULL;
        }
    }
    if (copy) rewind(copy);
    return copy;
}

// Batches and requests of megabytes come and go. What malloc gives back to the kernel each time is
// zeroed by it each time, which took as long as mapping the entries.
static void keep_freed_memory(void)
{
    enum { KEPT_BYTES_MAX = 64 * 1024 * 1024, MAPPED_BYTES_MIN = 32 * 1024 * 1024 };
    (void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES_MAX);
    (void)mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES_MIN);
}

int pi_import(Import *import, FILE *file, const char *name)
{
    keep_freed_memory();
    PiRun *run = calloc(1, sizeof(*run));
    FILE *readable = seekable(file);
    ErrorDetail detail = {{0}};
    if (!run || !readable) {
        free(run);
        return cli_say(EXIT_FAILED, "cannot read %s: %s", name, strerror(errno));
    }
    run->import = import;
    run->name = name;
    arena_init(&run->arena, PI_BATCH_ARENA_BYTES);
    Progress *reading = progress_begin(name, NULL, 0);
    Error error = pi_file_open(&run->file, readable, &detail);
    progress_end(reading);
    int code = error ? fail(run, error, &detail) : EXIT_OK;
    if (!code) {
        say_problems(run);
        snprintf(run->version, sizeof(run->version), "%u", run->file.version);
        Progress *progress = progress_begin_counted(name, &run->bytes_done, run->file.bytes);
        code = import_opened(run);
        progress_end(progress);
    }
    pi_file_close(&run->file);
    arena_free(&run->arena);
    pi_settings_free(&run->settings);
    if (readable != file) fclose(readable);
    free(run);
    return code;
}
