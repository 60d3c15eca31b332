// The import: the session first, then its entries. Entries that follow each other, child after
// parent, go in one batch; an entry that names another one of the batch begins the next.

#include "pi/pi_import.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "pi/pi_entry.h"
#include "pi/pi_file.h"
#include "pi/pi_json.h"
#include "pi/pi_known.h"
#include "progress.h"

enum {
    BATCH_COUNT_MAX = 512,
    BATCH_LINE_BYTES_MAX = 2 * 1024 * 1024, // or one entry that is larger
    BATCH_ARENA_BYTES = 512 * 1024 * 1024,
};

// What is known of no session: pi has none where we need one.
static char UNKNOWN[] = "unknown";

typedef struct PiRun {
    Import *import;
    PiFile file;
    const char *name; // of the file
    char session[ID_BYTES];
    bool is_new;
    atomic_uint_fast64_t bytes_done;

    // The batch: entries of the file and what they are for the store.
    Arena arena;
    uint32_t batch[BATCH_COUNT_MAX];
    NewMessage *messages[BATCH_COUNT_MAX];
    NewOriginal originals[BATCH_COUNT_MAX], *original_list[BATCH_COUNT_MAX];
    size_t count, line_bytes;

    uint64_t appended;
    int64_t time_ms;              // of the entry before
    char last[ID_BYTES];          // the last entry appended
    char *title;                  // the last name; owned; NULL: none
    char *provider, *model;       // the last that was used or chosen; owned
} PiRun;

static int fail(const PiRun *run, Error error, const ErrorDetail *detail)
{
    return cli_say(EXIT_FAILED, "%s: %s", run->name,
                   detail && *detail->text ? detail->text : error_text(error));
}

static int fail_call(const PiRun *run, uint32_t entry)
{
    const TineStatus *status = &run->import->cli->status;
    int code = entry == PI_NONE
                   ? cli_say(EXIT_FAILED, "%s: %s", run->name, status->message)
                   : cli_say(EXIT_FAILED, "%s: line %u or soon after: %s", run->name,
                             run->file.entries[entry].line, status->message);
    return exit_code_of(status->code) == EXIT_UNAVAILABLE ? EXIT_UNAVAILABLE : code;
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

// The whole batch or nothing of it; its first entry hangs below its own parent, each other one
// below the one before it.
static int append_batch(PiRun *run)
{
    Cli *cli = run->import->cli;
    PiEntry *entries = run->file.entries;
    AppendExchangeRequest request = APPEND_EXCHANGE_REQUEST__INIT;
    CLEANUP(message_freep) AppendExchangeResponse *reply = NULL;
    uint32_t parent = entries[run->batch[0]].parent;
    request.session_id = run->session;
    request.messages = run->messages;
    request.n_messages = run->count;
    request.originals = run->original_list;
    request.n_originals = run->count;
    request.parent_case = APPEND_EXCHANGE_REQUEST__PARENT_PARENT_ID;
    if (parent != PI_NONE) request.parent_id = entries[parent].store_id;
    if (tine_append_exchange(cli->tine, &cli->call, &request, &reply)) {
        return fail_call(run, run->batch[0]);
    }
    for (size_t i = 0; i < run->count && i < reply->n_receipts; i++) {
        snprintf(entries[run->batch[i]].store_id, PI_STORE_ID_BYTES, "%s", reply->receipts[i]->id);
    }
    snprintf(run->last, sizeof(run->last), "%s", entries[run->batch[run->count - 1]].store_id);
    return EXIT_OK;
}

// Of an entry that is there already, without its original or with one that has grown since.
static int put_original(PiRun *run, uint32_t entry)
{
    Cli *cli = run->import->cli;
    CLEANUP(buffer_free) Buffer bytes = {0};
    PutOriginalRequest request = PUT_ORIGINAL_REQUEST__INIT;
    CLEANUP(message_freep) PutOriginalResponse *reply = NULL;
    Error error = pi_file_source(&run->file, entry, &bytes);
    if (error) return fail(run, error, NULL);
    request.message_id = run->file.entries[entry].store_id;
    request.content.data = bytes.bytes + bytes.start;
    request.content.len = buffer_size(&bytes);
    int status = tine_put_original(cli->tine, &cli->call, &request, &reply);
    return status ? fail_call(run, entry) : EXIT_OK;
}

static int flush(PiRun *run)
{
    int code = run->count > 0 ? append_batch(run) : EXIT_OK;
    if (code) return code;
    run->appended += run->count;
    atomic_fetch_add(&run->import->entries_new, run->count);
    run->bytes_done += run->line_bytes;
    run->count = run->line_bytes = 0;
    arena_reset(&run->arena, BATCH_ARENA_BYTES);
    return EXIT_OK;
}

// The store's id of an entry that another one names; NULL if it is still in the batch.
static const char *store_id(const PiRun *run, uint32_t entry)
{
    const char *id = run->file.entries[entry].store_id;
    return *id ? id : NULL;
}

// What an entry names, if it is an entry of the file that comes before it, as the store has it.
static int resolve_target(PiRun *run, NewMessage *message, char *target, bool *out_is_pending)
{
    uint32_t entry = *target ? pi_file_find(&run->file, target) : PI_NONE;
    message->target_id = target;
    if (entry == PI_NONE) return EXIT_OK;
    const char *id = store_id(run, entry);
    for (size_t i = 0; !id && i < run->count; i++) *out_is_pending |= run->batch[i] == entry;
    if (!id) return EXIT_OK;
    message->target_id = arena_string(&run->arena, slice_of(id));
    return message->target_id ? EXIT_OK : fail(run, arena_error(&run->arena), NULL);
}

static bool is_ancestor(const PiFile *file, uint32_t ancestor, uint32_t entry)
{
    uint32_t at = file->entries[entry].parent;
    while (at != PI_NONE && at != ancestor) at = file->entries[at].parent;
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
            pi_name(&run->arena, (char *)(uintptr_t)pi_file_id(file, kept));
    }
    uint32_t cut_off = file->entries[kept].parent;
    marker->keep_all = cut_off == PI_NONE;
    if (marker->keep_all) return;
    const char *id = store_id(run, cut_off);
    *out_is_pending |= !id;
    if (id) marker->before_message_id = (char *)(uintptr_t)id;
}

// Reads an entry with its surroundings: the original is all of them, the entry a part.
static Error map_entry(PiRun *run, uint32_t entry, NewMessage **out, PiReferences *references)
{
    CLEANUP(buffer_free) Buffer bytes = {0};
    Slice original;
    const PiEntry *read = &run->file.entries[entry];
    Error error = pi_file_source(&run->file, entry, &bytes);
    if (!error) error = arena_copy(&run->arena, buffer_slice(&bytes), &original);
    if (error) return error;
    size_t before = entry > 0 ? 0 : (size_t)(read->offset - run->file.header_end);
    PiEntrySource source = {.json = slice(original.bytes + before, read->bytes),
                            .time_ms = run->time_ms,
                            .version = run->file.version};
    source.external_id = pi_external_id(&run->arena, &run->file, entry);
    if (!source.external_id) return arena_error(&run->arena);
    NewOriginal *kept = &run->originals[run->count];
    tine__v1__new_original__init(kept);
    kept->content.data = (uint8_t *)(uintptr_t)original.bytes;
    kept->content.len = original.size;
    run->original_list[run->count] = kept;
    return pi_entry_map(&run->arena, &source, out, references);
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

// Names and models of the session are those of its last entry that has one.
static int note_settings(PiRun *run, const NewMessage *message)
{
    if (message->kind == MESSAGE_KIND_NAME && *message->text) {
        free(run->title);
        Slice title = utf8_trim(utf8_cut(slice_of(message->text), TITLE_BYTES_MAX));
        run->title = strndup((const char *)title.bytes, title.size);
        if (!run->title) return fail(run, ERROR_OUT_OF_MEMORY, NULL);
    }
    if (!message->model || !*message->model->name || !*message->model->provider) return EXIT_OK;
    free(run->provider);
    free(run->model);
    run->provider = strdup(message->model->provider);
    run->model = strdup(message->model->name);
    return run->provider && run->model ? EXIT_OK : fail(run, ERROR_OUT_OF_MEMORY, NULL);
}

static bool fits(const PiRun *run, uint32_t entry)
{
    if (run->count == 0) return true;
    const PiEntry *next = &run->file.entries[entry];
    return run->count < BATCH_COUNT_MAX && next->parent == run->batch[run->count - 1] &&
           run->line_bytes + next->bytes <= BATCH_LINE_BYTES_MAX;
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
    if (!code && is_pending && run->count > 0) {
        code = flush(run); // the arena is empty again
        return code ? code : add(run, entry);
    }
    if (!code) code = note_settings(run, message);
    run->time_ms = message->created_at;
    run->batch[run->count] = entry;
    run->messages[run->count++] = message;
    run->line_bytes += run->file.entries[entry].bytes;
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
        if (!known->has_original) code = put_original(run, entry);
    }
    return code ? code : flush(run);
}

// The header: where the session belongs, and when it began.
static int fill_session(PiRun *run, NewSession *session)
{
    enum { TIMESTAMP, CWD, PARENT, COUNT };
    static const char *const NAMES[] = {"timestamp", "cwd", "parentSession"};
    static char here[PATH_BYTES_MAX + 1], version[16];
    Slice values[COUNT], header = slice_of(run->file.header);
    const char *directory = run->import->project_dir;
    if (pi_members(header, NAMES, COUNT, values, NULL)) return fail(run, ERROR_OUT_OF_MEMORY, NULL);
    char *cwd = pi_text(&run->arena, values[CWD]);
    session->source_parent = pi_name(&run->arena, pi_text(&run->arena, values[PARENT]));
    session->created_at = run->time_ms = pi_time_ms(values[TIMESTAMP]);
    if (!cwd || !session->source_parent) return fail(run, arena_error(&run->arena), NULL);
    session->project_dir = directory ? (char *)(uintptr_t)directory : cwd;
    if (!*session->project_dir && getcwd(here, sizeof(here))) session->project_dir = here;
    if (header.size <= SESSION_DATA_JSON_BYTES_MAX && utf8_is_valid(header) &&
        json_is_valid(header, NULL)) {
        session->data_json = run->file.header;
    }
    snprintf(version, sizeof(version), "%u", run->file.version);
    session->data_version = version;
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
    model.provider = model.name = UNKNOWN;
    session.model = &model;
    session.external = external;
    request.session = &session;
    if (tine_create_session(cli->tine, &cli->call, &request, &reply)) {
        return fail_call(run, PI_NONE);
    }
    snprintf(run->session, sizeof(run->session), "%s", reply->session->id);
    run->is_new = true;
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
    return pi_known(cli, run->session, &run->file) ? fail_call(run, PI_NONE) : EXIT_OK;
}

// pi's leaf is the file's last entry; where parents came late that is not what was appended last.
static int move_head(PiRun *run)
{
    Cli *cli = run->import->cli;
    RewindSessionRequest request = REWIND_SESSION_REQUEST__INIT;
    CLEANUP(message_freep) RewindSessionResponse *reply = NULL;
    if (run->appended == 0) return EXIT_OK;
    request.message_id = run->file.entries[run->file.count - 1].store_id;
    request.session_id = run->session;
    if (strcmp(request.message_id, run->last) == 0) return EXIT_OK;
    int status = tine_rewind_session(cli->tine, &cli->call, &request, &reply);
    return status ? fail_call(run, PI_NONE) : EXIT_OK;
}

static int update_session(PiRun *run)
{
    Cli *cli = run->import->cli;
    SessionField mask[2];
    UpdateSessionRequest request = UPDATE_SESSION_REQUEST__INIT;
    CLEANUP(message_freep) UpdateSessionResponse *reply = NULL;
    request.session_id = run->session;
    request.mask = mask;
    if (run->title && *run->title) {
        request.title = run->title;
        mask[request.n_mask++] = SESSION_FIELD_TITLE;
    }
    ModelRef model = MODEL_REF__INIT;
    if (run->model) {
        model.provider = run->provider;
        model.name = run->model;
        request.model = &model;
        mask[request.n_mask++] = SESSION_FIELD_MODEL;
    }
    if (request.n_mask == 0) return EXIT_OK;
    int status = tine_update_session(cli->tine, &cli->call, &request, &reply);
    return status ? fail_call(run, PI_NONE) : EXIT_OK;
}

// The last entry's bytes reach to the file's end, which may have moved since they were stored.
static void renew_last(PiRun *run)
{
    uint32_t last = run->file.count;
    while (last > 0 && !*run->file.entries[last - 1].store_id) last--;
    if (last > 0) run->file.entries[last - 1].has_original = false;
}

static int import_opened(PiRun *run)
{
    int code = find_or_make_session(run);
    if (!code) {
        renew_last(run);
        code = add_all(run);
    }
    if (!code) code = move_head(run);
    return code ? code : update_session(run);
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

int pi_import(Import *import, FILE *file, const char *name)
{
    PiRun *run = calloc(1, sizeof(*run));
    FILE *readable = seekable(file);
    ErrorDetail detail = {{0}};
    if (!run || !readable) {
        free(run);
        return cli_say(EXIT_FAILED, "cannot read %s: %s", name, strerror(errno));
    }
    run->import = import;
    run->name = name;
    arena_init(&run->arena, BATCH_ARENA_BYTES);
    Error error = pi_file_open(&run->file, readable, &detail);
    int code = error ? fail(run, error, &detail) : EXIT_OK;
    if (!code) {
        say_problems(run);
        Progress *progress = progress_begin_counted(name, &run->bytes_done, run->file.bytes);
        code = import_opened(run);
        progress_end(progress);
    }
    pi_file_close(&run->file);
    arena_free(&run->arena);
    free(run->title);
    free(run->provider);
    free(run->model);
    if (readable != file) fclose(readable);
    free(run);
    return code;
}
