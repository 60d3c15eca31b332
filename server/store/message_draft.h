// Drafts: the client's half of a message, packed where it was received.
//
// Packing a message of 16 MiB must not hold the writer, so the thread that received the request
// packs it, leaving room in front for the head and the server's fields, and room inside for the
// part ids that only the write transaction can issue.

#pragma once

#include "report/error_detail.h"
#include "store/message.h"

typedef struct MessageDraft {
    const NewMessage *message; // borrowed; in the call's arena, like all below
    uint8_t *bytes;            // the packed fields; MESSAGE_PREFIX_BYTES_MAX free bytes before it
    size_t size;
    Totals usage; // zero if there is none
    bool has_usage;
    int64_t created_at;      // 0: the server's clock
    uint8_t **part_ids;      // where each part's id stands in `bytes` …
    bool *part_id_is_issued; // … and whether the server issues it
    Slice first_text;        // for the previews; within `bytes`
    bool has_call_id;        // of the form of an id
    uint8_t *call_id;        // where it stands in `bytes`, if message_draft_await_call was asked
} MessageDraft;

// Gives a message that is still to be packed a place for the id of a call that the write
// transaction will issue: message_draft_set_call writes it.
void message_draft_await_call(NewMessage *message);
void message_draft_set_call(const MessageDraft *draft, Ulid call);

// Packs a checked message whose defaults are filled in. The message is not to be used again but
// through the draft: fields that the server writes are moved out of it.
// ERROR_TOO_LONG: packed it is over MESSAGE_BYTES_MAX. ERROR_OUT_OF_MEMORY.
MUST_USE Error message_draft_make(Arena *arena, NewMessage *message, ErrorDetail *detail,
                                  MessageDraft *out);
