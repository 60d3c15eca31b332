// Session listing. The most selective index that a filter offers yields candidates in the order of
// their IDs; for the order by activity, by_active yields them. Then every filter is compared with
// the candidate's own bytes, which also excludes hash collisions. Nothing is decoded.

#include "store/session_list.h"

#include "base/limits.h"
#include "store/record.h"
#include "store/session_index.h"
#include "text/utf8.h"
#include "wire/wire.h"

SessionQuery session_query_all(void)
{
    return (SessionQuery){
        .project_dir = "",
        .workspace_id = "",
        .account_id = "",
        .project_id = "",
        .role_name = "",
        .external_source = "",
        .slug = "",
        .deleted = DELETED_FILTER_INCLUDE,
        .id_high = ULID_MAX,
        .order = SESSION_ORDER_CREATED,
        .limit = SESSION_LIST_LIMIT_DEFAULT,
        .page_bytes = PAGE_BYTES_DEFAULT,
        .before_active = INT64_MAX,
        .before = ULID_MAX,
    };
}

// The source of candidates: rows whose key is `prefix` followed by an ID, read backwards.
typedef struct Source {
    KvCursor *cursor;
    StoreTable table;
    Key prefix;
    bool is_by_active;
    bool is_started;
    Ulid before;           // candidates are strictly before this ID …
    int64_t before_active; // … or, by activity, before this pair
} Source;

static void source_index(Source *source, SessionListing listing, Hash hash)
{
    source->table = TABLE_SESSION_INDEX;
    Key key = key_session_index(listing, hash, ULID_ZERO);
    source->prefix = key;
    source->prefix.size = KEY_SESSION_INDEX_BYTES - ULID_BYTES;
}

static bool source_by_text(Source *source, SessionListing listing, const char *text)
{
    if (!*text) return false;
    source_index(source, listing, hash_bytes(slice_of(text)));
    return true;
}

// Reads only deleted, archived or active sessions if the query asks for one of these.
static void source_choose_state(Source *source, const SessionQuery *query)
{
    if (query->deleted == DELETED_FILTER_ONLY) {
        source_index(source, LISTING_DELETED, HASH_ZERO);
    } else if (query->archived == ARCHIVED_FILTER_ONLY) {
        source_index(source, LISTING_ARCHIVED, HASH_ZERO);
    } else if (query->archived == ARCHIVED_FILTER_EXCLUDE &&
               query->deleted != DELETED_FILTER_INCLUDE) {
        source_index(source, LISTING_ACTIVE, HASH_ZERO);
    }
}

static void source_choose(Source *source, const SessionQuery *query)
{
    *source = (Source){
        .table = TABLE_SESSIONS, .before = query->before, .before_active = query->before_active};
    if (query->order == SESSION_ORDER_LAST_ACTIVE) {
        source->table = TABLE_BY_ACTIVE;
        source->is_by_active = true;
    } else if (query->status != SESSION_STATUS_UNSPECIFIED &&
               query->status != SESSION_STATUS_IDLE) {
        source_index(source, LISTING_STATUS, session_index_status_hash(query->status));
    } else if (!ulid_is_zero(query->parent)) {
        source->table = TABLE_CHILDREN;
        source->prefix = key_of_id(query->parent);
    } else if (query->external) {
        source_index(source, LISTING_EXTERNAL,
                     hash_pair(slice_of(query->external->source), slice_of(query->external->id)));
    } else if (!source_by_text(source, LISTING_SLUG, query->slug) &&
               !source_by_text(source, LISTING_EXTERNAL_SOURCE, query->external_source) &&
               !source_by_text(source, LISTING_WORKSPACE, query->workspace_id) &&
               !source_by_text(source, LISTING_PROJECT, query->project_id) &&
               !source_by_text(source, LISTING_ACCOUNT, query->account_id) &&
               !source_by_text(source, LISTING_PROJECT_DIR, query->project_dir) &&
               !source_by_text(source, LISTING_ROLE_NAME, query->role_name)) {
        source_choose_state(source, query);
    }
}

// Returns a key that is above the keys of all remaining candidates.
static Key source_bound(const Source *source)
{
    if (source->is_by_active) return key_by_active(source->before_active, source->before);
    Key key = source->prefix;
    key_add_id(&key, source->before);
    return key;
}

static Error source_next(Txn *txn, Source *source, bool *out_found, Ulid *out)
{
    KvRow row;
    Error error;
    if (source->is_started && source->table != TABLE_SESSIONS) {
        error = kv_previous(source->cursor, out_found, &row);
    } else { // a session has several rows: skip the others
        Key bound = source_bound(source);
        error = kv_seek_before(source->cursor, key_slice(&bound), out_found, &row);
    }
    source->is_started = true;
    if (error || !*out_found) return error;
    *out_found = slice_starts_with(row.key, key_slice(&source->prefix));
    if (!*out_found) return ERROR_NONE;
    size_t offset = source->is_by_active ? 8 : source->prefix.size;
    if (row.key.size < offset + ULID_BYTES) {
        return error_say(txn->detail, ERROR_CORRUPT,
                         "the key of a session's index row is too short");
    }
    *out = key_id_at(row.key, offset);
    source->before = *out;
    if (source->is_by_active) source->before_active = (int64_t)bytes_get_u64(row.key.bytes);
    return ERROR_NONE;
}

// The values that filters compare, as slices of the stored bytes.
typedef struct View {
    Slice settings, head;
    int64_t kind, deleted_at, archived_at, status, status_until, last_active_at;
    Slice parent, slug, title, project_dir, account, project, workspace, role_name;
    Slice external_source, external_id, first_preview;
} View;

static void view_field(View *view, const WireField *field)
{
    switch (field->number) {
    case FIELD_SESSION_KIND: view->kind = (int64_t)field->value; break;
    case FIELD_SESSION_DELETED_AT: view->deleted_at = (int64_t)field->value; break;
    case FIELD_SESSION_ARCHIVED_AT: view->archived_at = (int64_t)field->value; break;
    case FIELD_SESSION_PARENT_ID: view->parent = field->bytes; break;
    case FIELD_SESSION_SLUG: view->slug = field->bytes; break;
    case FIELD_SESSION_TITLE: view->title = field->bytes; break;
    case FIELD_SESSION_PROJECT_DIR: view->project_dir = field->bytes; break;
    case FIELD_SESSION_ACCOUNT_ID: view->account = field->bytes; break;
    case FIELD_SESSION_PROJECT_ID: view->project = field->bytes; break;
    case FIELD_SESSION_WORKSPACE_ID: view->workspace = field->bytes; break;
    case FIELD_SESSION_ROLE_NAME: view->role_name = field->bytes; break;
    case FIELD_SESSION_STATUS: view->status = (int64_t)field->value; break;
    case FIELD_SESSION_STATUS_UNTIL: view->status_until = (int64_t)field->value; break;
    case FIELD_SESSION_LAST_ACTIVE_AT: view->last_active_at = (int64_t)field->value; break;
    case FIELD_SESSION_FIRST_MESSAGE_PREVIEW: view->first_preview = field->bytes; break;
    default: break;
    }
}

static void view_external(View *view, Slice external)
{
    WireField field;
    if (wire_find(external, FIELD_EXTERNAL_SOURCE, &field)) view->external_source = field.bytes;
    if (wire_find(external, FIELD_EXTERNAL_ID, &field)) view->external_id = field.bytes;
}

// Fills the view from the settings read so far. Returns whether they contain all that a listing
// needs.
static bool view_settings(View *view, Slice settings)
{
    Slice rest = settings;
    WireField field;
    while (rest.size > 0) {
        Slice before = rest;
        bool is_read = wire_next(&rest, &field);
        if (is_read && field.number < SESSION_BRIEF_END) {
            view_field(view, &field);
            if (field.number == FIELD_SESSION_EXTERNAL) view_external(view, field.bytes);
            continue;
        }
        // Either the fields that listings omit begin here, or the rest is in the next chunk.
        settings.size = (size_t)(before.bytes - settings.bytes);
        view->settings = settings;
        return wire_next_number(before) >= SESSION_BRIEF_END;
    }
    view->settings = settings;
    return true;
}

// Reads the rows of a candidate. `scratch` holds settings that have several chunks.
static Error view_read(Txn *txn, Ulid id, Buffer *scratch, View *view)
{
    *view = (View){.kind = 0};
    Key key = key_session(id, SESSION_ROW_HEAD);
    bool found;
    Error error = record_get_first(txn, TABLE_SESSIONS, &key, &found, &view->head);
    if (error) return error;
    if (!found)
        return error_say(txn->detail, ERROR_CORRUPT,
                         "an index row names a session that does not exist");
    Slice rest = view->head;
    WireField field;
    while (wire_next(&rest, &field))
        view_field(view, &field);

    key = key_session(id, SESSION_ROW_SETTINGS);
    Slice chunk;
    error = record_get_first(txn, TABLE_SESSIONS, &key, &found, &chunk);
    if (error) return error;
    if (!found) return error_say(txn->detail, ERROR_CORRUPT, "a session has no settings row");
    if (view_settings(view, chunk) || chunk.size < VALUE_BYTES_MAX) return ERROR_NONE;

    error = buffer_reset(scratch, 0);
    for (uint16_t i = 1; !error; i++) {
        error = buffer_append(scratch, chunk);
        if (error || view_settings(view, buffer_slice(scratch))) break;
        if (chunk.size < VALUE_BYTES_MAX) break;
        Key chunk_key = key_with_chunk(&key, i);
        error = txn_get(txn, TABLE_SESSIONS, &chunk_key, &found, &chunk);
        if (!found) break;
    }
    return error;
}

static bool text_matches(Slice stored, const char *wanted)
{
    return !*wanted || slice_equal(stored, slice_of(wanted));
}

static bool view_matches_ids(const View *view, const SessionQuery *query)
{
    if (!ulid_is_zero(query->parent)) {
        Ulid parent;
        if (!ulid_parse(view->parent, &parent) || !ulid_equal(parent, query->parent)) return false;
    }
    return text_matches(view->workspace, query->workspace_id) &&
           text_matches(view->account, query->account_id) &&
           text_matches(view->project, query->project_id) &&
           text_matches(view->role_name, query->role_name) &&
           text_matches(view->slug, query->slug) &&
           text_matches(view->external_source, query->external_source) &&
           (!query->external || (text_matches(view->external_source, query->external->source) &&
                                 text_matches(view->external_id, query->external->id)));
}

static bool view_matches(const View *view, const SessionQuery *query, int64_t now_ms)
{
    bool is_deleted = view->deleted_at != 0;
    if (query->deleted == DELETED_FILTER_ONLY && !is_deleted) return false;
    if (query->deleted != DELETED_FILTER_ONLY && query->deleted != DELETED_FILTER_INCLUDE &&
        is_deleted) {
        return false;
    }
    bool is_archived = view->archived_at != 0;
    if (query->archived == ARCHIVED_FILTER_ONLY && !is_archived) return false;
    if (query->archived == ARCHIVED_FILTER_EXCLUDE && is_archived) return false;
    if (query->kind != SESSION_KIND_UNSPECIFIED && view->kind != (int64_t)query->kind) return false;
    if (query->status != SESSION_STATUS_UNSPECIFIED &&
        session_status_now((SessionStatus)view->status, view->status_until, now_ms) !=
            query->status) {
        return false;
    }
    if (view->last_active_at < query->active_since) return false;
    if (!text_matches(view->project_dir, query->project_dir)) return false;
    if (!view_matches_ids(view, query)) return false;
    return query->folded_query.size == 0 || utf8_contains_folded(view->slug, query->folded_query) ||
           utf8_contains_folded(view->title, query->folded_query) ||
           utf8_contains_folded(view->project_dir, query->folded_query) ||
           utf8_contains_folded(view->first_preview, query->folded_query);
}

// Checks one candidate and appends it if it matches. Sets `*out_done` if no later candidate can
// belong to the page.
static Error page_visit(Txn *txn, const SessionQuery *query, Ulid id, uint32_t field, Buffer *out,
                        Buffer *scratch, SessionPage *page, bool *out_done)
{
    View view;
    if (store_leaves_out(txn->store, id)) return ERROR_NONE;
    Error error = view_read(txn, id, scratch, &view);
    if (error) return error;
    if (query->order == SESSION_ORDER_LAST_ACTIVE && view.last_active_at < query->active_since) {
        *out_done = true;
        return ERROR_NONE;
    }
    if (!view_matches(&view, query, txn->now_ms)) return ERROR_NONE;
    size_t size = wire_bytes_field_size(field, view.settings.size + view.head.size);
    bool is_over = page->count > 0 && buffer_size(out) + size > query->page_bytes;
    if (page->count == query->limit || is_over) {
        page->is_more = *out_done = true;
        return ERROR_NONE;
    }
    page->count++;
    return session_rows_append_to(txn, view.settings, view.head, /* is_brief= */ false, field, out);
}

Error session_append_page(Txn *txn, const SessionQuery *query, uint32_t field, Buffer *out,
                          SessionPage *out_page)
{
    *out_page = (SessionPage){.last = query->before, .last_active = query->before_active};
    Source source;
    source_choose(&source, query);
    if (!source.is_by_active && ulid_compare(query->id_high, source.before) < 0) {
        source.before = ulid_next(query->id_high);
    }
    Error error = kv_cursor_open(txn->kv, (KvTable)source.table, &source.cursor);
    Buffer scratch = {.bytes = NULL};
    bool is_done = false;
    for (size_t scanned = 0; !error && !is_done; scanned++) {
        Ulid id = ULID_ZERO;
        bool found;
        error = source_next(txn, &source, &found, &id);
        if (error || !found || ulid_compare(id, query->id_low) < 0) break;
        if (scanned == SCANNED_RECORDS_MAX) {
            out_page->is_more = true;
            break;
        }
        error = page_visit(txn, query, id, field, out, &scratch, out_page, &is_done);
        if (error || out_page->is_more) break;
        out_page->last = id;
        out_page->last_active = source.before_active;
    }
    buffer_free(&scratch);
    kv_cursor_close(source.cursor);
    return error;
}
