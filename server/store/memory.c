// Memories: stores, forgets and lists them.

#include "store/memory.h"

#include "base/limits.h"
#include "store/event.h"
#include "store/record.h"
#include "store/session.h"
#include "wire/wire.h"

enum { MEMORY_KEY_BYTES = 2 * ULID_BYTES + 2 };

static Error memory_event(Txn *txn, Ulid session, Session *head, const char *type, char *id)
{
    Event event = EVENT__INIT;
    event.type = (char *)(uintptr_t)type;
    event.record_id = id;
    Error error = event_put(txn, session, head, &event);
    if (error) return error;
    return session_put_head(txn, session, head);
}

static Error memory_put(Txn *txn, Ulid session, Ulid id, const Memory *memory)
{
    Slice bytes;
    Error error = txn_encode(txn->arena, &memory->base, 0, &bytes);
    if (error) return error;
    Key key = key_of_ids(session, id);
    return record_put(txn, TABLE_MEMORIES, &key, bytes);
}

Error memory_remember(Txn *txn, Ulid session, const NewMemory *new_memory, Ulid *out)
{
    Session *head;
    Error error = session_head_for_write(txn, session, &head);
    if (error) return error;
    Ulid id = txn_issue_id(txn);
    Memory memory = MEMORY__INIT;
    memory.id = txn_id_text(txn, id);
    memory.session_id = txn_id_text(txn, session);
    if (!memory.id || !memory.session_id) return arena_error(txn->arena);
    memory.scope = new_memory->scope;
    memory.title = new_memory->title;
    memory.body = new_memory->body;
    memory.content = new_memory->content;
    memory.source = new_memory->source;
    memory.path = new_memory->path;
    memory.created_at = memory.updated_at = txn->now_ms;
    error = memory_put(txn, session, id, &memory);
    if (error) return error;
    *out = id;
    return memory_event(txn, session, head, EVENT_MEMORY_REMEMBERED, memory.id);
}

Error memory_forget(Txn *txn, Ulid session, Ulid id)
{
    Session *head;
    Error error = session_head_for_write(txn, session, &head);
    if (error) return error;
    Key key = key_of_ids(session, id);
    Slice bytes;
    bool found;
    error = record_get(txn, TABLE_MEMORIES, &key, &found, &bytes);
    if (error) return error;
    if (!found) return ERROR_MEMORY_NOT_FOUND;
    Memory *memory;
    error = txn_decode(txn, &memory__descriptor, bytes, &memory);
    if (error) return error;
    if (memory->deleted_at != 0) return ERROR_MEMORY_NOT_FOUND;
    memory->deleted_at = memory->updated_at = txn->now_ms;
    error = memory_put(txn, session, id, memory);
    if (error) return error;
    return memory_event(txn, session, head, EVENT_MEMORY_FORGOTTEN, memory->id);
}

Error memory_append_to(Txn *txn, Ulid session, Ulid id, uint32_t field, Buffer *out)
{
    Key key = key_of_ids(session, id);
    Slice bytes;
    bool found;
    Error error = record_get(txn, TABLE_MEMORIES, &key, &found, &bytes);
    if (error) return error;
    if (!found) return ERROR_MEMORY_NOT_FOUND;
    return wire_append_bytes(out, field, bytes);
}

Error memory_append_page(Txn *txn, Ulid session, Ulid after, uint32_t limit, size_t page_bytes,
                         uint32_t field, Buffer *out, Ulid *out_last)
{
    *out_last = ULID_ZERO;
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    Error error = kv_cursor_open(txn->kv, TABLE_MEMORIES, &cursor);
    uint32_t count = 0;
    for (size_t scanned = 0; !error; scanned++) {
        Key key = key_of_ids(session, ulid_next(after));
        KvRow row;
        bool found;
        error = kv_seek(cursor, key_slice(&key), &found, &row);
        if (error || !found || row.key.size != MEMORY_KEY_BYTES) return error;
        if (!slice_starts_with(row.key, ulid_slice(&session))) return ERROR_NONE;
        Ulid id = key_id_at(row.key, ULID_BYTES);
        Slice bytes;
        WireField field_read;
        error = record_read_on(txn, cursor, &row, &bytes);
        if (error) return error;
        bool is_active = !wire_find(bytes, FIELD_MEMORY_DELETED_AT, &field_read);
        size_t size = is_active ? wire_bytes_field_size(field, bytes.size) : 0;
        if (count == limit || scanned == SCANNED_RECORDS_MAX ||
            (count > 0 && buffer_size(out) + size > page_bytes)) {
            *out_last = after;
            return ERROR_NONE;
        }
        after = id;
        if (!is_active) continue;
        error = wire_append_bytes(out, field, bytes);
        count++;
    }
    return error;
}
