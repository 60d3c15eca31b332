// Open messages: appends parts to a message one by one, until it is sealed.
//
// The encoded field of a part is appended to the stored bytes, which then still encode the message.
// The cost does not depend on the length of the message or on the number of its parts, because
// separate rows tell which parts it has (store/open_parts.h).

#pragma once

#include "store/message.h"

enum {
    SEAL_BYTES_MAX = 512, // for the fields that end a message, except its error
    // Limit for a message with its parts. It leaves room for the fields that seal it and for an
    // error.
    OPEN_BYTES_MAX = MESSAGE_BYTES_MAX - ERROR_MESSAGE_BYTES_MAX - 1024,
};

// A part, packed on the thread that received it, as the field to append to the message's bytes.
typedef struct PartDraft {
    const Part *part; // borrowed; in the call's arena, like all below
    uint8_t *bytes;   // the field, including its tag
    size_t size;
    uint8_t *id; // position of the part's ID in `bytes` …
    size_t id_size;
    bool id_is_issued; // … and whether the server issues that ID
    bool has_text;     // it is a text part and not empty
} PartDraft;

// Packs a part that was checked. ERROR_TOO_LONG, ERROR_OUT_OF_MEMORY.
MUST_USE Error part_draft_make(Arena *arena, Part *part, PartDraft *out);

// How a message ends.
typedef struct MessageSeal {
    MessageStatus status;
    int64_t completed_at;      // 0: now
    int64_t duration_ms;       // 0: unchanged
    const Usage *usage;        // NULL: unchanged
    const char *finish_reason; // "": unchanged
    const ErrorInfo *error;    // NULL: unchanged
    bool propagate_usage;
} MessageSeal;

// Appends a part, or replaces the part that has the same ID. Fills the receipt of the message, with
// the part's ID. ERROR_MESSAGE_NOT_FOUND, ERROR_SESSION_DELETED, ERROR_SESSION_ARCHIVED,
// ERROR_MESSAGE_SEALED, ERROR_TOO_LONG: the message would have too many parts or too many bytes.
MUST_USE Error message_append_part(Txn *txn, Ulid message, const PartDraft *draft,
                                   Receipt *out_receipt);

// Seals an open message. Errors: as message_append_part; ERROR_TOO_LONG: no room is left for
// `error`.
MUST_USE Error message_seal(Txn *txn, Ulid message, const MessageSeal *seal, Receipt *out_receipt);
