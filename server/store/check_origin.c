// Check of origins and readers, in both directions.

#include "store/check_pass.h"
#include "store/message.h"

// Checks the session and message that an origin leads to.
static Error check_target(Check *check, Slice key, Ulid session, Ulid target, Ulid message)
{
    Key owner_key = key_of_id(message);
    bool found;
    Slice owner;
    Error error = check_row(check, TABLE_MESSAGE_OWNER, &owner_key, &found, &owner);
    if (error) return error;
    if (!found || !slice_equal(owner, ulid_slice(&target))) {
        check_damage(check, DAMAGE_ORIGIN, TABLE_ORIGINS, key,
                     "the session that it names does not own the message");
    }
    if (ulid_equal(target, session)) return ERROR_NONE;
    SessionState state;
    error = check_session_state(check, target, &state);
    if (error) return error;
    if (!state.is_live && !state.is_tombstone) {
        check_damage(check, DAMAGE_ORIGIN, TABLE_ORIGINS, key,
                     "the session that it leads to does not exist");
    }
    Key reader = key_of_ids(target, session);
    error = check_row(check, TABLE_READERS, &reader, &found, NULL);
    if (error || found) return error;
    check_damage(check, DAMAGE_READER, TABLE_ORIGINS, key, "readers has no row for it");
    return ERROR_NONE;
}

static Error check_origin_row(Check *check, void *context, Slice key, Slice bytes)
{
    (void)context;
    Ulid session = key_id_at(key, 0), at = key_id_at(key, ULID_BYTES);
    SessionState state;
    Error error = check_session_state(check, session, &state);
    // During a purge, the target may be deleted before the origin.
    if (error || (!state.is_live && !state.is_tombstone)) return error;
    if (bytes.size != 2 * ULID_BYTES) {
        check_damage(check, DAMAGE_ORIGIN, TABLE_ORIGINS, key, "its value has %zu bytes",
                     bytes.size);
        return ERROR_NONE;
    }
    Ulid target = key_id_at(bytes, 0), message = key_id_at(bytes, ULID_BYTES);
    bool is_nothing = ulid_is_zero(message);
    if (ulid_compare(at, session) < 0 || ulid_compare(message, at) >= 0 ||
        is_nothing != ulid_is_zero(target)) {
        check_damage(
            check, DAMAGE_ORIGIN, TABLE_ORIGINS, key,
            "it is older than its session, or its target is not older than it or incomplete");
        return ERROR_NONE;
    }
    return is_nothing ? ERROR_NONE : check_target(check, key, session, target, message);
}

typedef struct OriginSearch {
    Ulid target;
    bool is_found;
} OriginSearch;

static Error find_origin(Check *check, void *context, Slice key, Slice bytes)
{
    (void)check;
    (void)key;
    OriginSearch *search = context;
    if (bytes.size == 2 * ULID_BYTES && ulid_equal(key_id_at(bytes, 0), search->target)) {
        search->is_found = true;
    }
    return ERROR_NONE;
}

static Error check_reader_row(Check *check, void *context, Slice key, Slice bytes)
{
    (void)context;
    (void)bytes;
    OriginSearch search = {.target = key_id_at(key, 0)};
    Ulid reader = key_id_at(key, ULID_BYTES);
    Error error = check_each(check, TABLE_ORIGINS, ulid_slice(&reader), find_origin, &search);
    if (error || search.is_found) return error;
    check_damage(check, DAMAGE_READER, TABLE_READERS, key,
                 "the reader has no origin that leads to the session");
    return ERROR_NONE;
}

Error check_origins(Check *check)
{
    Slice all = {NULL, 0};
    Error error = check_each(check, TABLE_ORIGINS, all, check_origin_row, NULL);
    if (!error) error = check_each(check, TABLE_READERS, all, check_reader_row, NULL);
    return error;
}
