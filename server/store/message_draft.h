// Drafts: packs the client's part of a message on the thread that received it.
//
// Packing a message of 16 MiB must not hold up the writer. The draft has room in front for the
// header and the server's fields, and room inside for the IDs of parts, which only the write
// transaction can issue.

#pragma once

#include "report/error_detail.h"
#include "store/message.h"

typedef struct MessageDraft {
    const NewMessage *message; // borrowed; in the call's arena, like all below
    uint8_t *bytes; // the packed fields; MESSAGE_PREFIX_BYTES_MAX bytes in front are free
    size_t size;
    Totals usage; // zero if the message has none
    bool has_usage;
    int64_t created_at;      // 0: the server's clock
    uint8_t **part_ids;      // position of each part's ID in `bytes` …
    bool *part_id_is_issued; // … and whether the server issues that ID
    Slice text;              // for previews (message_text)
    bool has_call_id;        // call_id has the form of an ID
    uint8_t *call_id;        // position in `bytes`, after message_draft_await_call
} MessageDraft;

// Reserve room for the ID of a call that the write transaction will issue. message_draft_await_call
// must be called before the message is packed. message_draft_set_call writes the ID later.
void message_draft_await_call(NewMessage *message);
void message_draft_set_call(const MessageDraft *draft, Ulid call);

// Packs a message that was checked and has its defaults. The caller must not use `message`
// afterwards, except through the draft: the fields that the server writes are removed from it.
// ERROR_TOO_LONG: the packed message exceeds MESSAGE_BYTES_MAX. ERROR_OUT_OF_MEMORY.
MUST_USE Error message_draft_make(Arena *arena, NewMessage *message, ErrorDetail *detail,
                                  MessageDraft *out);
