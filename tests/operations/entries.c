// Entries of any shape.

#include "entries.h"

#include <stdio.h>
#include <stdlib.h>

Receipt *entry_ok(Fixture *f, const char *session, NewMessage *message)
{
    return CALL_OK(f, append_message, AppendMessage,
                   {.session_id = CHARS(session), .message = message})
        ->receipt;
}

void entry_fails(Fixture *f, const char *session, NewMessage *message, const char *reason)
{
    CALL_FAILS(f, append_message, AppendMessage, reason,
               {.session_id = CHARS(session), .message = message});
}

Receipt *part_ok(Fixture *f, const char *session, Part *part)
{
    return entry_ok(f, session, &(NewMessage){.role = ROLE_USER, .n_parts = 1, .parts = &part});
}

void part_fails(Fixture *f, const char *session, Part *part, const char *reason)
{
    entry_fails(f, session, &(NewMessage){.role = ROLE_USER, .n_parts = 1, .parts = &part}, reason);
}

Message *message_ok(Fixture *f, const char *id)
{
    return CALL_OK(f, get_message, GetMessage,
                   {.by_case = GET_MESSAGE_REQUEST__BY_MESSAGE_ID, .message_id = CHARS(id)})
        ->message;
}

const char *newest_ok(Fixture *f, const char *session)
{
    return get_ok(f, session)->last_entry_id;
}

const char *marker_ok(Fixture *f, const char *session, const char *before, const char *summary)
{
    Marker marker = {
        .before_message_id = CHARS(before ? before : ""),
        .keep_all = before == NULL,
        .summary = CHARS(summary),
    };
    return CALL_OK(f, add_compaction_marker, AddCompactionMarker,
                   {.session_id = CHARS(session), .marker = &marker})
        ->entry->id;
}

const char *setting_ok(Fixture *f, const char *session, const char *subtype, const char *text)
{
    return entry_ok(f, session,
                    &(NewMessage){
                        .kind = MESSAGE_KIND_SETTING,
                        .subtype = CHARS(subtype),
                        .text = CHARS(text),
                    })
        ->id;
}

Receipt *message_delete_ok(Fixture *f, const char *message)
{
    return CALL_OK(f, delete_message, DeleteMessage, {.message_id = CHARS(message)})->receipt;
}

Receipt *message_purge_ok(Fixture *f, const char *message)
{
    return CALL_OK(f, purge_message, PurgeMessage, {.message_id = CHARS(message)})->receipt;
}

const char *order_of(Fixture *f, Message **messages, size_t count, const char *const *ids,
                     size_t id_count)
{
    char *order = fixture_alloc(f, 2 * count + 1);
    for (size_t i = 0; i < count; i++) {
        size_t place = 0;
        while (place < id_count && strcmp(ids[place], messages[i]->id) != 0)
            place++;
        order[2 * i] = place < id_count ? (char)('a' + place) : '?';
        order[2 * i + 1] = i + 1 < count ? ' ' : '\0';
    }
    return order;
}

char *filled(Fixture *f, char character, size_t count)
{
    char *text = fixture_alloc(f, count + 1);
    memset(text, character, count);
    return text;
}

static bool table_holds(KvTxn *txn, KvTable table, Slice text)
{
    CLEANUP(kv_cursor_closep) KvCursor *cursor = NULL;
    CHECK_EQ(kv_cursor_open(txn, table, &cursor), ERROR_NONE);
    KvRow row;
    bool found, holds = false;
    for (;;) {
        CHECK_EQ(kv_next(cursor, &found, &row), ERROR_NONE);
        if (!found) return holds;
        if (memmem(row.key.bytes, row.key.size, text.bytes, text.size)) holds = true;
        if (memmem(row.value.bytes, row.value.size, text.bytes, text.size)) holds = true;
    }
}

bool store_holds(Fixture *f, const char *text)
{
    Txn txn;
    Error error = txn_begin(engine_store(f->engine), /* is_write= */ false, NULL, NULL, &txn);
    CHECK_EQ(error, ERROR_NONE);
    bool holds = false;
    for (KvTable table = 0; !holds && table < TABLE_COUNT; table++)
        holds = table_holds(txn.kv, table, slice_of(text));
    txn_abort(&txn);
    return holds;
}

uint64_t newest_sequence(Fixture *f)
{
    return CALL_OK(f, list_events, ListEvents, {.limit = 1})->newest_sequence;
}
