// Costs. A page walks over sessions and the calls of each. A tree of sessions is walked in
// preorder, so the session at which a page ended is all that the next page must know: it continues
// with that session's first child, else with its next sibling, else with the next sibling of the
// nearest ancestor that has one.

#include "store/cost.h"

#include "base/limits.h"
#include "store/message.h"
#include "store/record.h"
#include "store/session.h"
#include "store/totals.h"
#include "wire/wire.h"

enum {
    DAY_MS = 24 * 3600 * 1000,
    GROUP_SLOTS = 4 * 8192, // over twice SCANNED_RECORDS_MAX, so never full
    ROW_NUMBERS_BYTES = 128,
};
_Static_assert(GROUP_SLOTS > 2 * SCANNED_RECORDS_MAX, "room for each scanned call to be a group");

typedef struct CostScan {
    Txn *txn;
    const CostQuery *query;
    CostPlace place;
    bool has_session;
    Slice root_id, project_dir; // of the session; copies in the arena
    size_t scanned, bytes;
    bool is_full;
    uint16_t *slots; // hash table: a row's index + 1, at the hash of its key
    Slice *keys;     // the key of each row
    CostSum **rows;
    size_t row_count;
} CostScan;

typedef struct CostCall {
    Ulid id;
    ModelRef *model;
    Usage *usage;
    int64_t created_at;
} CostCall;

// Finds the first row of a table that is not before `key` and begins with the first `prefix_size`
// bytes of `key`. Returns the ID that follows this prefix.
static Error next_id(Txn *txn, StoreTable table, const Key *key, size_t prefix_size,
                     bool *out_found, Ulid *out)
{
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    Error error = kv_cursor_open(txn->kv, (KvTable)table, &cursor);
    KvRow row;
    if (!error) error = kv_seek(cursor, key_slice(key), out_found, &row);
    if (error || !*out_found) return error;
    *out_found = slice_starts_with(row.key, slice(key->bytes, prefix_size));
    if (!*out_found) return ERROR_NONE;
    if (row.key.size < prefix_size + ULID_BYTES) return kv_refuse_key(cursor, row.key);
    *out = key_id_at(row.key, prefix_size);
    return ERROR_NONE;
}

// Finds the next session of a tree in preorder. `parent` is the parent of `session` in case
// `session` is gone.
static Error next_of_tree(CostScan *scan, Ulid session, Ulid parent)
{
    Txn *txn = scan->txn;
    Ulid root = scan->query->session;
    Key key = key_of_id(session);
    bool found;
    Error error = next_id(txn, TABLE_CHILDREN, &key, ULID_BYTES, &found, &scan->place.session);
    SessionBrief brief;
    bool is_first = true;
    for (Ulid at = session; !error && !found && !ulid_equal(at, root); is_first = false) {
        error = session_brief(txn, at, &brief);
        bool is_gone = error == ERROR_SESSION_NOT_FOUND && is_first;
        if (error && !is_gone) return error;
        at = is_gone ? parent : brief.parent;
        key = key_of_ids(at, ulid_next(session));
        error = next_id(txn, TABLE_CHILDREN, &key, ULID_BYTES, &found, &scan->place.session);
        session = at;
    }
    scan->has_session = found;
    return error;
}

static Error next_session(CostScan *scan)
{
    const CostQuery *query = scan->query;
    Ulid session = scan->place.session, parent = scan->place.parent;
    bool is_first = ulid_is_zero(session);
    scan->place = (CostPlace){.session = query->session};
    scan->has_session = is_first;
    if (!ulid_is_zero(query->session)) {
        if (is_first || !query->with_descendants) return ERROR_NONE;
        return next_of_tree(scan, session, parent);
    }
    Ulid after = is_first ? ULID_ZERO : ulid_next(session);
    if (!*query->project_dir) {
        Key key = key_of_id(after);
        return next_id(scan->txn, TABLE_CALLS, &key, 0, &scan->has_session, &scan->place.session);
    }
    Key key =
        key_session_index(LISTING_PROJECT_DIR, hash_bytes(slice_of(query->project_dir)), after);
    return next_id(scan->txn, TABLE_SESSION_INDEX, &key, 1 + HASH_BYTES, &scan->has_session,
                   &scan->place.session);
}

// Finds a field in bytes that may be cut off anywhere. The fields must be in order.
static bool field_find(Slice bytes, uint32_t number, WireField *out)
{
    while (wire_next(&bytes, out) && out->number <= number) {
        if (out->number == number) return true;
    }
    return false;
}

static Error keep_text(Txn *txn, Slice text, Slice *out)
{
    char *copy = arena_string(txn->arena, text);
    if (!copy) return arena_error(txn->arena);
    *out = slice(copy, text.size);
    return ERROR_NONE;
}

static Error read_places(CostScan *scan, Slice *out_root, Slice *out_project)
{
    Txn *txn = scan->txn;
    Key key = key_session(scan->place.session, SESSION_ROW_SETTINGS);
    Slice bytes = {NULL, 0};
    WireField root, project;
    bool found = false;
    Error error = record_get_first(txn, TABLE_SESSIONS, &key, &found, &bytes);
    if (!error && !field_find(bytes, FIELD_SESSION_PROJECT_DIR, &project)) {
        error = record_get(txn, TABLE_SESSIONS, &key, &found, &bytes); // the path has kilobytes
    }
    if (error) return error;
    if (!field_find(bytes, FIELD_SESSION_ROOT_ID, &root) ||
        !field_find(bytes, FIELD_SESSION_PROJECT_DIR, &project)) {
        return error_say(txn->detail, ERROR_CORRUPT,
                         "the settings of a session have no root_id or no project_dir");
    }
    *out_root = root.bytes;
    *out_project = project.bytes;
    return ERROR_NONE;
}

// Reads the session's parent, root and project, but not its prompt and data. Sets `*out_counts` if
// the session exists and belongs to the project of the query.
static Error session_begin(CostScan *scan, bool *out_counts)
{
    Txn *txn = scan->txn;
    *out_counts = false;
    if (store_leaves_out(txn->store, scan->place.session)) return ERROR_NONE;
    SessionBrief brief;
    Slice root, project;
    Error error = session_brief(txn, scan->place.session, &brief);
    if (error == ERROR_SESSION_NOT_FOUND) { // purged, but its calls are not yet deleted
        if (txn->detail) txn->detail->text[0] = '\0';
        return ERROR_NONE;
    }
    if (!error) error = read_places(scan, &root, &project);
    if (error) return error;
    scan->place.parent = brief.parent;
    Slice wanted = slice_of(scan->query->project_dir);
    *out_counts = wanted.size == 0 || slice_equal(wanted, project);
    if (!*out_counts) return ERROR_NONE;
    error = keep_text(txn, root, &scan->root_id);
    return error ? error : keep_text(txn, project, &scan->project_dir);
}

// Reads the fields to be summed. All of them are in the call's first chunk.
static Error call_read(Txn *txn, Slice bytes, CostCall *out)
{
    ModelRef *requested = NULL, *resolved = NULL;
    WireField field;
    Error error = ERROR_NONE;
    while (!error && wire_next(&bytes, &field) && field.number <= FIELD_CALL_RECORD_CREATED_AT) {
        if (field.number == FIELD_CALL_RECORD_REQUESTED) {
            error = txn_decode(txn, &model_ref__descriptor, field.bytes, &requested);
        } else if (field.number == FIELD_CALL_RECORD_RESOLVED) {
            error = txn_decode(txn, &model_ref__descriptor, field.bytes, &resolved);
        } else if (field.number == FIELD_CALL_RECORD_USAGE) {
            error = txn_decode(txn, &usage__descriptor, field.bytes, &out->usage);
        } else if (field.number == FIELD_CALL_RECORD_CREATED_AT) {
            out->created_at = (int64_t)field.value;
        }
    }
    out->model = resolved ? resolved : requested;
    if (error || out->model) return error;
    return error_say(txn->detail, ERROR_CORRUPT, "a stored call has no model");
}

// Fills the group fields of a row and returns the key of the group.
static Error group_of(const CostScan *scan, const CostCall *call, CostSum *row, Slice *out_key)
{
    Txn *txn = scan->txn;
    char *session = NULL;
    size_t size;
    char *both;
    switch (scan->query->by) {
    case COST_GROUP_SESSION:
        session = txn_id_text(txn, scan->place.session);
        row->session_id = session;
        *out_key = slice(session, session ? ULID_TEXT_BYTES : 0);
        return session ? ERROR_NONE : arena_error(txn->arena);
    case COST_GROUP_TREE:
        row->session_id = (char *)(uintptr_t)scan->root_id.bytes;
        *out_key = scan->root_id;
        return ERROR_NONE;
    case COST_GROUP_PROJECT:
        row->project_dir = (char *)(uintptr_t)scan->project_dir.bytes;
        *out_key = scan->project_dir;
        return ERROR_NONE;
    case COST_GROUP_MODEL:
        row->model = call->model;
        size = strlen(call->model->provider) + 1; // neither contains a NUL
        both = arena_alloc(txn->arena, size + strlen(call->model->name) + 1);
        if (!both) return arena_error(txn->arena);
        memcpy(both, call->model->provider, size);
        memcpy(both + size, call->model->name, strlen(call->model->name) + 1);
        *out_key = slice(both, size + strlen(call->model->name));
        return ERROR_NONE;
    case COST_GROUP_DAY:
    case COST_GROUP_UNSPECIFIED:
    default: break;
    }
    row->day_at = call->created_at - call->created_at % DAY_MS;
    *out_key = slice(&row->day_at, sizeof(row->day_at));
    return ERROR_NONE;
}

// Finds the row of a call's group, or adds one. `*out` is NULL, and `is_full` is set, if the page
// has no room for another.
static Error row_of(CostScan *scan, const CostCall *call, CostSum **out)
{
    *out = NULL;
    Txn *txn = scan->txn;
    CostSum *row = arena_new(txn->arena, CostSum);
    if (!row) return arena_error(txn->arena);
    tine__v1__cost_sum__init(row);
    Slice key;
    Error error = group_of(scan, call, row, &key);
    if (error) return error;
    Hash hash = hash_bytes(key);
    size_t slot = bytes_get_u64(hash.bytes) % GROUP_SLOTS;
    for (; scan->slots[slot]; slot = (slot + 1) % GROUP_SLOTS) {
        size_t index = scan->slots[slot] - 1u;
        if (!slice_equal(scan->keys[index], key)) continue;
        *out = scan->rows[index];
        return ERROR_NONE;
    }
    size_t size = key.size + ROW_NUMBERS_BYTES;
    scan->is_full = scan->row_count > 0 && scan->bytes + size > scan->query->page_bytes;
    if (scan->is_full) return ERROR_NONE;
    row->totals = arena_new(txn->arena, Totals);
    if (!row->totals) return arena_error(txn->arena);
    tine__v1__totals__init(row->totals);
    scan->bytes += size;
    scan->keys[scan->row_count] = key;
    scan->rows[scan->row_count++] = row;
    scan->slots[slot] = (uint16_t)scan->row_count;
    *out = row;
    return ERROR_NONE;
}

static Error call_sum(CostScan *scan, const CostCall *call)
{
    const CostQuery *query = scan->query;
    bool is_wanted = (query->since == 0 || call->created_at >= query->since) &&
                     (query->until == 0 || call->created_at < query->until);
    if (!is_wanted) return ERROR_NONE;
    CostSum *row;
    Error error = row_of(scan, call, &row);
    if (error || !row) return error;
    row->call_count++;
    if (!call->usage) return ERROR_NONE;
    Totals delta = message_usage_totals(call->usage);
    totals_add(row->totals, &delta);
    return ERROR_NONE;
}

// Sums the calls of the current session that come after `place.call`.
static Error session_sum(CostScan *scan, KvCursor *cursor)
{
    Ulid session = scan->place.session;
    for (;;) {
        Ulid next = ulid_is_zero(scan->place.call) ? ULID_ZERO : ulid_next(scan->place.call);
        Key record_key = key_of_ids(session, next);
        Key key = key_with_chunk(&record_key, 0);
        KvRow row;
        bool found;
        Error error = kv_seek(cursor, key_slice(&key), &found, &row);
        if (error || !found || !slice_starts_with(row.key, ulid_slice(&session))) return error;
        if (row.key.size != KEY_MESSAGE_BYTES) return kv_refuse_key(cursor, row.key);
        scan->is_full = scan->scanned == SCANNED_RECORDS_MAX;
        if (scan->is_full) return ERROR_NONE;
        scan->scanned++;
        CostCall call = {.id = key_id_at(row.key, ULID_BYTES)};
        error = call_read(scan->txn, row.value, &call);
        if (!error) error = call_sum(scan, &call);
        if (error || scan->is_full) return error;
        scan->place.call = call.id;
    }
}

static Error sum_sessions(CostScan *scan, KvCursor *cursor)
{
    Error error = ERROR_NONE;
    scan->has_session = !ulid_is_zero(scan->place.session);
    if (!scan->has_session) error = next_session(scan);
    while (!error && scan->has_session) {
        bool counts;
        scan->is_full = scan->scanned == SCANNED_RECORDS_MAX;
        if (scan->is_full) return ERROR_NONE;
        scan->scanned++;
        error = session_begin(scan, &counts);
        if (!error && counts) error = session_sum(scan, cursor);
        if (error || scan->is_full) return error;
        error = next_session(scan);
    }
    scan->place = (CostPlace){.session = ULID_ZERO};
    return error;
}

Error cost_summarize(Txn *txn, const CostQuery *query, CostPlace *place, SummarizeCostResponse *out)
{
    CostScan scan = {.txn = txn, .query = query, .place = *place};
    scan.slots = arena_array(txn->arena, uint16_t, GROUP_SLOTS);
    scan.keys = arena_array(txn->arena, Slice, SCANNED_RECORDS_MAX);
    scan.rows = arena_array(txn->arena, CostSum *, SCANNED_RECORDS_MAX);
    if (!scan.slots || !scan.keys || !scan.rows) return arena_error(txn->arena);
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    Error error = kv_cursor_open(txn->kv, TABLE_CALLS, &cursor);
    if (!error) error = sum_sessions(&scan, cursor);
    if (error) return error;
    *place = scan.place;
    out->rows = scan.rows;
    out->n_rows = scan.row_count;
    return ERROR_NONE;
}
