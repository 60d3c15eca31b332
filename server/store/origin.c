// Origins: walks along them and searches the tree of a session.
//
// The history of a session S, as it was when c was the newest ID, is defined by its newest origin:
//
//     history(S, c):  let R be the newest origin of S that is not newer than c
//                     no such origin:  the entries of S up to c
//                     otherwise:       history(P, M), then the entries of S in (R, c]
//
// A walk returns these segments, newest first. IDs only get smaller along a walk (M < R). So in a
// history that is read oldest first, IDs rise strictly across all segments. That is why one ID is
// enough to continue a page.
//
// The tree of S is larger than its history: it also contains the branches that were left. The
// search enters sessions, each with a cut-off c. The entries of a session up to c are in the tree,
// and so is all that its origins up to c lead to. The search may enter a session several times.
// Only a larger cut-off can find more.

#include "store/origin.h"

#include "base/limits.h"
#include "store/message.h"

enum { ORIGIN_VALUE_BYTES = 2 * ULID_BYTES };

Error origin_walk_begin(OriginWalk *walk, Txn *txn, Ulid session, Ulid through)
{
    *walk = (OriginWalk){.txn = txn, .session = session, .through = through};
    return kv_cursor_open(txn->kv, TABLE_ORIGINS, &walk->cursor);
}

void origin_walk_end(OriginWalk *walk)
{
    kv_cursor_close(walk->cursor);
    walk->cursor = NULL;
}

static Error origin_decode(Txn *txn, const KvRow *row, Ulid *out_at, SessionOrigin *out)
{
    if (row->key.size != KEY_PAIR_BYTES || row->value.size != ORIGIN_VALUE_BYTES) {
        return error_say(txn->detail, ERROR_CORRUPT, "an origin has the wrong size");
    }
    *out_at = key_id_at(row->key, ULID_BYTES);
    out->is_set = true;
    out->session = key_id_at(row->value, 0);
    out->message = key_id_at(row->value, ULID_BYTES);
    if (ulid_compare(out->message, *out_at) >= 0) {
        return error_say(txn->detail, ERROR_CORRUPT,
                         "an origin leads to a message that is not older than it");
    }
    return ERROR_NONE;
}

// Finds the newest origin of `session` that is not newer than `through`. `out->is_set` is false if
// there is none.
static Error origin_before(Txn *txn, KvCursor *cursor, Ulid session, Ulid through, Ulid *out_at,
                           SessionOrigin *out)
{
    *out = (SessionOrigin){.is_set = false};
    Key key = key_of_ids(session, ulid_next(through));
    KvRow row;
    bool found;
    Error error = kv_seek_before(cursor, key_slice(&key), &found, &row);
    if (error) return error;
    if (!found || !slice_starts_with(row.key, ulid_slice(&session))) return ERROR_NONE;
    return origin_decode(txn, &row, out_at, out);
}

Error origin_walk_next(OriginWalk *walk, bool *out_found, Segment *out)
{
    *out_found = !walk->is_done;
    if (walk->is_done) return ERROR_NONE;

    Ulid at = ULID_ZERO;
    SessionOrigin origin;
    Error error =
        origin_before(walk->txn, walk->cursor, walk->session, walk->through, &at, &origin);
    if (error) return error;
    *out = (Segment){walk->session, origin.is_set ? at : ULID_ZERO, walk->through};
    if (!origin.is_set || ulid_is_zero(origin.message)) {
        walk->is_done = true;
    } else {
        walk->session = origin.session;
        walk->through = origin.message;
    }
    return ERROR_NONE;
}

Error origin_segments(Txn *txn, Ulid session, Ulid through, SegmentList *out)
{
    OriginWalk walk = {.cursor = NULL};
    Error error = origin_walk_begin(&walk, txn, session, through);
    size_t capacity = 16, count = 0;
    Segment *segments = error ? NULL : arena_array(txn->arena, Segment, capacity);
    if (!error && !segments) error = arena_error(txn->arena);
    while (!error) {
        if (count == capacity) {
            Segment *larger = arena_array(txn->arena, Segment, 2 * capacity);
            if (!larger) {
                error = arena_error(txn->arena);
                break;
            }
            memcpy(larger, segments, count * sizeof(Segment));
            segments = larger;
            capacity *= 2;
        }
        bool found;
        error = origin_walk_next(&walk, &found, &segments[count]);
        if (error || !found) break;
        count++;
    }
    origin_walk_end(&walk);
    *out = (SegmentList){segments, count};
    return error;
}

bool segments_contain(const SegmentList *list, Ulid owner, Ulid message)
{
    for (size_t i = 0; i < list->count; i++) {
        const Segment *segment = &list->segments[i];
        if (ulid_equal(segment->session, owner) && ulid_compare(segment->after, message) < 0 &&
            ulid_compare(message, segment->through) <= 0) {
            return true;
        }
    }
    return false;
}

// The sessions that the search of a tree has entered, each with its largest cut-off: a hash table
// in the arena, and a stack of the sessions that are still to be searched.
typedef struct Visit {
    Ulid session; // zero: the slot is free
    Ulid through;
} Visit;

typedef struct Visits {
    Arena *arena;
    Visit *slots;
    size_t capacity, count; // capacity: a power of two
    Visit *stack;
    size_t stack_capacity, stack_count;
} Visits;

static Visit *visit_slot(Visit *slots, size_t capacity, Ulid session)
{
    uint64_t hash = bytes_get_u64(session.bytes + 8) * UINT64_C(0x9E3779B97F4A7C15);
    for (size_t i = hash >> 20;; i++) {
        Visit *slot = &slots[i & (capacity - 1)];
        if (ulid_is_zero(slot->session) || ulid_equal(slot->session, session)) return slot;
    }
}

static Error visits_grow(Visits *visits)
{
    size_t capacity = visits->capacity ? 2 * visits->capacity : 64;
    Visit *slots = arena_array(visits->arena, Visit, capacity);
    if (!slots) return arena_error(visits->arena);
    for (size_t i = 0; i < visits->capacity; i++) {
        const Visit *old = &visits->slots[i];
        if (!ulid_is_zero(old->session)) *visit_slot(slots, capacity, old->session) = *old;
    }
    visits->slots = slots;
    visits->capacity = capacity;
    return ERROR_NONE;
}

static Error stack_push(Visits *visits, Visit visit)
{
    if (visits->stack_count == visits->stack_capacity) {
        size_t capacity = visits->stack_capacity ? 2 * visits->stack_capacity : 64;
        Visit *stack = arena_array(visits->arena, Visit, capacity);
        if (!stack) return arena_error(visits->arena);
        if (visits->stack_count) memcpy(stack, visits->stack, visits->stack_count * sizeof(Visit));
        visits->stack = stack;
        visits->stack_capacity = capacity;
    }
    visits->stack[visits->stack_count++] = visit;
    return ERROR_NONE;
}

// Enters a session, unless it was already entered with this cut-off or a larger one.
static Error visits_enter(Visits *visits, Ulid session, Ulid through)
{
    if (2 * visits->count >= visits->capacity) {
        Error error = visits_grow(visits);
        if (error) return error;
    }
    Visit *slot = visit_slot(visits->slots, visits->capacity, session);
    if (ulid_is_zero(slot->session)) {
        visits->count++;
    } else if (ulid_compare(slot->through, through) >= 0) {
        return ERROR_NONE;
    }
    *slot = (Visit){session, through};
    return stack_push(visits, *slot);
}

// Searches one entered session: looks for `message` of `owner`, and enters the sessions that its
// origins lead to.
static Error visit_expand(Txn *txn, KvCursor *cursor, Visits *visits, const Visit *visit,
                          Ulid owner, Ulid message, bool *out_found)
{
    *out_found = ulid_equal(visit->session, owner) && ulid_compare(message, visit->through) <= 0;
    if (*out_found) return ERROR_NONE;
    Key key = key_of_ids(visit->session, ULID_ZERO);
    KvRow row;
    bool found;
    Error error;
    for (error = kv_seek(cursor, key_slice(&key), &found, &row);
         !error && found && slice_starts_with(row.key, ulid_slice(&visit->session));
         error = kv_next(cursor, &found, &row)) {
        Ulid at;
        SessionOrigin origin;
        error = origin_decode(txn, &row, &at, &origin);
        if (error) return error;
        if (ulid_compare(at, visit->through) > 0) break;
        if (ulid_is_zero(origin.message)) continue;
        error = visits_enter(visits, origin.session, origin.message);
        if (error) return error;
    }
    return error;
}

static Error tree_contains(Txn *txn, Ulid session, Ulid owner, Ulid message, bool *out_found)
{
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    Error error = kv_cursor_open(txn->kv, TABLE_ORIGINS, &cursor);
    if (error) return error;
    Visits visits = {.arena = txn->arena};
    error = visits_enter(&visits, session, ULID_MAX);
    *out_found = false;
    while (!error && !*out_found && visits.stack_count > 0) {
        Visit visit = visits.stack[--visits.stack_count];
        error = visit_expand(txn, cursor, &visits, &visit, owner, message, out_found);
    }
    return error;
}

Error origin_resolve(Txn *txn, Ulid session, Ulid message, Ulid *out_owner)
{
    Ulid owner;
    Error error = message_owner(txn, message, &owner);
    if (error) return error;
    if (!ulid_equal(owner, session)) {
        bool found = false;
        error = tree_contains(txn, session, owner, message, &found);
        if (error) return error;
        if (!found) {
            char text[ULID_TEXT_BYTES + 1], session_text[ULID_TEXT_BYTES + 1];
            ulid_format(message, text);
            ulid_format(session, session_text);
            return error_say(txn->detail, ERROR_NOT_IN_TREE,
                             "message %s is not in the tree of session %s", text, session_text);
        }
    }
    *out_owner = owner;
    return ERROR_NONE;
}

Error origin_put(Txn *txn, Ulid session, Ulid at, const SessionOrigin *target)
{
    uint8_t value[ORIGIN_VALUE_BYTES];
    memcpy(value, target->session.bytes, ULID_BYTES);
    memcpy(value + ULID_BYTES, target->message.bytes, ULID_BYTES);
    Key key = key_of_ids(session, at);
    Error error = txn_put(txn, TABLE_ORIGINS, &key, slice(value, sizeof(value)));
    if (error) return error;
    if (ulid_is_zero(target->message) || ulid_equal(target->session, session)) return ERROR_NONE;
    key = key_of_ids(target->session, session);
    return txn_put(txn, TABLE_READERS, &key, (Slice){NULL, 0});
}

Error origin_check_depth(Txn *txn, const SessionOrigin *target)
{
    uint32_t depth_max = store_options(txn->store)->fork_depth_max;
    if (depth_max == 0 || !target->is_set || ulid_is_zero(target->message)) return ERROR_NONE;
    SegmentList list;
    Error error = origin_segments(txn, target->session, target->message, &list);
    if (error) return error;
    Visits distinct = {.arena = txn->arena};
    for (size_t i = 0; i < list.count; i++) {
        error = visits_enter(&distinct, list.segments[i].session, ULID_ZERO);
        if (error) return error;
    }
    if (distinct.count <= depth_max) return ERROR_NONE;
    return error_say(txn->detail, ERROR_FORK_CHAIN_TOO_DEEP,
                     "the fork would read %zu ancestors; --max-fork-depth allows %u",
                     distinct.count, depth_max);
}
