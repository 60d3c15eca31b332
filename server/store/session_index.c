// Session indexes: maintains the rows of session_index and looks sessions up in them. A hash yields
// candidates, and the record of each is then compared, so a hash collision is never taken for a
// match.

#include "store/session_index.h"

#include <stdio.h>

#include "base/limits.h"
#include "store/session.h"
#include "text/utf8.h"

static size_t entry_add(SessionIndexEntry *out, size_t count, SessionListing listing,
                        const char *text)
{
    if (!*text) return count;
    out[count] = (SessionIndexEntry){listing, hash_bytes(slice_of(text))};
    return count + 1;
}

Hash session_index_status_hash(SessionStatus status)
{
    return (Hash){{(uint8_t)status}};
}

size_t session_index_entries(SessionIndexed session,
                             SessionIndexEntry out[SESSION_INDEX_ENTRIES_MAX])
{
    const Session *settings = session.settings;
    size_t count = 0;
    if (!settings) return 0;
    count = entry_add(out, count, LISTING_PROJECT_DIR, settings->project_dir);
    count = entry_add(out, count, LISTING_SLUG, settings->slug);
    count = entry_add(out, count, LISTING_WORKSPACE, settings->workspace_id);
    count = entry_add(out, count, LISTING_ACCOUNT, settings->account_id);
    count = entry_add(out, count, LISTING_PROJECT, settings->project_id);
    count = entry_add(out, count, LISTING_ROLE_NAME, settings->role_name);
    if (settings->external) {
        const External *external = settings->external;
        count = entry_add(out, count, LISTING_EXTERNAL_SOURCE, external->source);
        out[count++] = (SessionIndexEntry){LISTING_EXTERNAL, hash_pair(slice_of(external->source),
                                                                       slice_of(external->id))};
    }
    if (settings->deleted_at != 0) {
        out[count++] = (SessionIndexEntry){LISTING_DELETED, {{0}}};
    }
    if (settings->archived_at != 0) {
        out[count++] = (SessionIndexEntry){LISTING_ARCHIVED, {{0}}};
    } else if (settings->deleted_at == 0) {
        out[count++] = (SessionIndexEntry){LISTING_ACTIVE, {{0}}};
    }
    if (session.status != SESSION_STATUS_UNSPECIFIED && session.status != SESSION_STATUS_IDLE) {
        Hash hash = session_index_status_hash(session.status);
        out[count++] = (SessionIndexEntry){LISTING_STATUS, hash};
    }
    return count;
}

static bool entries_contain(const SessionIndexEntry *entries, size_t count,
                            const SessionIndexEntry *entry)
{
    for (size_t i = 0; i < count; i++) {
        if (entries[i].listing == entry->listing &&
            memcmp(entries[i].hash.bytes, entry->hash.bytes, HASH_BYTES) == 0) {
            return true;
        }
    }
    return false;
}

Error session_index_update(Txn *txn, Ulid id, SessionIndexed before, SessionIndexed after)
{
    SessionIndexEntry old_entries[SESSION_INDEX_ENTRIES_MAX];
    SessionIndexEntry new_entries[SESSION_INDEX_ENTRIES_MAX];
    size_t old_count = session_index_entries(before, old_entries);
    size_t new_count = session_index_entries(after, new_entries);

    for (size_t i = 0; i < old_count; i++) {
        if (entries_contain(new_entries, new_count, &old_entries[i])) continue;
        Key key = key_session_index(old_entries[i].listing, old_entries[i].hash, id);
        Error error = txn_delete(txn, TABLE_SESSION_INDEX, &key);
        if (error) return error;
    }
    for (size_t i = 0; i < new_count; i++) {
        if (entries_contain(old_entries, old_count, &new_entries[i])) continue;
        Key key = key_session_index(new_entries[i].listing, new_entries[i].hash, id);
        Error error = txn_put(txn, TABLE_SESSION_INDEX, &key, (Slice){NULL, 0});
        if (error) return error;
    }
    return ERROR_NONE;
}

typedef bool (*SettingsMatch)(const Session *settings, const void *wanted);

static bool slug_matches(const Session *settings, const void *wanted)
{
    return strcmp(settings->slug, wanted) == 0;
}

static bool external_matches(const Session *settings, const void *wanted)
{
    const External *external = wanted;
    return settings->external && strcmp(settings->external->source, external->source) == 0 &&
           strcmp(settings->external->id, external->id) == 0;
}

// Finds the first session other than `except` that has this index entry and whose settings match.
static Error find_holder(Txn *txn, const SessionIndexEntry *entry, SettingsMatch matches,
                         const void *wanted, Ulid except, Ulid *out)
{
    *out = ULID_ZERO;
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    Error error = kv_cursor_open(txn->kv, TABLE_SESSION_INDEX, &cursor);
    if (error) return error;
    Key key = key_session_index(entry->listing, entry->hash, ULID_ZERO);
    Slice prefix = {key.bytes, KEY_SESSION_INDEX_BYTES - ULID_BYTES};
    KvRow row;
    bool found;
    for (error = kv_seek(cursor, key_slice(&key), &found, &row);
         !error && found && slice_starts_with(row.key, prefix);
         error = kv_next(cursor, &found, &row)) {
        if (row.key.size != KEY_SESSION_INDEX_BYTES) return kv_refuse_key(cursor, row.key);
        Ulid id = key_id_at(row.key, prefix.size);
        if (ulid_equal(id, except)) continue;
        Session *settings;
        error = session_settings(txn, id, &settings);
        if (error == ERROR_SESSION_NOT_FOUND) {
            return error_say(txn->detail, ERROR_CORRUPT, "an indexed session is missing");
        }
        if (error) return error;
        if (matches(settings, wanted)) {
            *out = id;
            return ERROR_NONE;
        }
    }
    return error;
}

Error session_index_slug_holder(Txn *txn, const char *slug, Ulid except, Ulid *out)
{
    SessionIndexEntry entry = {LISTING_SLUG, hash_bytes(slice_of(slug))};
    return find_holder(txn, &entry, slug_matches, slug, except, out);
}

Error session_index_external_holder(Txn *txn, const External *external, Ulid *out)
{
    SessionIndexEntry entry = {LISTING_EXTERNAL,
                               hash_pair(slice_of(external->source), slice_of(external->id))};
    return find_holder(txn, &entry, external_matches, external, ULID_ZERO, out);
}

// Writes "slug-n". Cuts the slug between code points if the result would exceed the limit.
static void slug_with_suffix(const char *slug, uint32_t n, char out[SLUG_BYTES_MAX + 1])
{
    char suffix[16];
    int suffix_size = snprintf(suffix, sizeof(suffix), "-%u", n);
    size_t size = utf8_cut(slice_of(slug), SLUG_BYTES_MAX - (size_t)suffix_size).size;
    snprintf(out, SLUG_BYTES_MAX + 1, "%.*s%s", (int)size, slug, suffix);
}

// Finds a free "slug-n" whose predecessor "slug-(n-1)" is taken. Doubles n until it is free, then
// halves the gap: about 2 log n lookups even if a thousand sessions have the same slug.
static Error slug_find_suffix(Txn *txn, const char *slug, Ulid self, char out[SLUG_BYTES_MAX + 1])
{
    uint32_t taken = 1, free_n = 2;
    for (;;) {
        slug_with_suffix(slug, free_n, out);
        Ulid holder;
        Error error = session_index_slug_holder(txn, out, self, &holder);
        if (error) return error;
        if (ulid_is_zero(holder)) break;
        taken = free_n;
        if (free_n >= SLUG_SUFFIX_MAX) {
            return error_say(txn->detail, ERROR_SLUG_TAKEN,
                             "there is no free suffix for slug '%s'; choose another slug", slug);
        }
        free_n *= 2;
    }
    while (free_n - taken > 1) {
        uint32_t middle = taken + (free_n - taken) / 2;
        slug_with_suffix(slug, middle, out);
        Ulid holder;
        Error error = session_index_slug_holder(txn, out, self, &holder);
        if (error) return error;
        if (ulid_is_zero(holder)) {
            free_n = middle;
        } else {
            taken = middle;
        }
    }
    slug_with_suffix(slug, free_n, out);
    return ERROR_NONE;
}

Error session_index_settle_slug(Txn *txn, const char *slug, SlugPolicy policy, Ulid self,
                                char **out_slug)
{
    char settled[SLUG_BYTES_MAX + 1];
    snprintf(settled, sizeof(settled), "%s", slug);
    if (*slug && policy != SLUG_POLICY_FREE && policy != SLUG_POLICY_UNSPECIFIED) {
        Ulid holder;
        Error error = session_index_slug_holder(txn, slug, self, &holder);
        if (error) return error;
        if (!ulid_is_zero(holder) && policy == SLUG_POLICY_UNIQUE) {
            char holder_text[ULID_TEXT_BYTES + 1];
            ulid_format(holder, holder_text);
            return error_say(txn->detail, ERROR_SLUG_TAKEN,
                             "slug '%s' is already used by session %s", slug, holder_text);
        }
        if (!ulid_is_zero(holder)) {
            error = slug_find_suffix(txn, slug, self, settled);
            if (error) return error;
        }
    }
    *out_slug = arena_string(txn->arena, slice_of(settled));
    return *out_slug ? ERROR_NONE : arena_error(txn->arena);
}

Error session_is_tombstone(Txn *txn, Ulid session, bool *out)
{
    Key key = key_session_index(LISTING_TOMBSTONE, HASH_ZERO, session);
    Slice value;
    return txn_get(txn, TABLE_SESSION_INDEX, &key, out, &value);
}

Error session_is_readable(Txn *txn, Ulid session, bool *out)
{
    Key record_key = key_session(session, SESSION_ROW_HEAD);
    Key key = key_with_chunk(&record_key, 0);
    Slice value;
    if (store_leaves_out(txn->store, session)) return store_refuse_left_out(session, txn->detail);
    Error error = txn_get(txn, TABLE_SESSIONS, &key, out, &value);
    return error || *out ? error : session_is_tombstone(txn, session, out);
}
