// Open messages: parts are appended to them one by one, until they are sealed.
//
// A part's encoded field goes behind the stored bytes, which are then still the message: neither
// the message's length nor its parts make that slower. Whether a part's id is known already, and
// how many parts there are, is read from rows that an open message has in `parts` under the kind 0;
// sealing takes them away.

#pragma once

#include "store/message.h"

enum {
    SEAL_BYTES_MAX = 512, // of what ends a message, without its error
    // What parts may make of a message: an end and an error fit behind it.
    OPEN_BYTES_MAX = MESSAGE_BYTES_MAX - ERROR_MESSAGE_BYTES_MAX - 1024,
};

// A part, packed where it was received, as the field that goes behind the message's bytes.
typedef struct PartDraft {
    const Part *part; // borrowed; in the call's arena, like all below
    uint8_t *bytes;   // the field with its tag
    size_t size;
    uint8_t *id; // where the id stands in `bytes` …
    size_t id_size;
    bool id_is_issued; // … and whether the server issues it
    bool has_text;     // it is a text part that is not empty
} PartDraft;

// Packs a checked part. ERROR_TOO_LONG, ERROR_OUT_OF_MEMORY.
MUST_USE Error part_draft_make(Arena *arena, Part *part, PartDraft *out);

// How a message ends.
typedef struct MessageSeal {
    MessageStatus status;
    int64_t completed_at;      // 0: now
    int64_t duration_ms;       // 0: as it was
    const Usage *usage;        // NULL: as it was
    const char *finish_reason; // "": as it was
    const ErrorInfo *error;    // NULL: as it was
    bool propagate_usage;
} MessageSeal;

// Writes the rows of a message that is appended open.
MUST_USE Error message_open_put(Txn *txn, Ulid session, Ulid message, char **part_ids,
                                size_t part_count, bool has_text);

// Appends a part, or puts it in the place of the one with its id, and fills the message's receipt
// with its id. ERROR_MESSAGE_NOT_FOUND, ERROR_SESSION_DELETED, ERROR_SESSION_ARCHIVED,
// ERROR_MESSAGE_SEALED, ERROR_TOO_LONG: too many parts, or the message would be too large.
MUST_USE Error message_append_part(Txn *txn, Ulid message, const PartDraft *draft,
                                   Receipt *out_receipt);

// Ends an open message. Errors as above; ERROR_TOO_LONG: no room is left for `error`.
MUST_USE Error message_seal(Txn *txn, Ulid message, const MessageSeal *seal, Receipt *out_receipt);

// The value of an open message's first row, and where a part's id is found: for the check.
enum { OPEN_ROW_BYTES = 3, OPEN_ID_ROW_BYTES = 18 };
void open_row_encode(size_t part_count, bool has_text, uint8_t out[OPEN_ROW_BYTES]);

// Looks a part's id up; `out_index` is its place among the parts.
MUST_USE Error open_part_find(Txn *txn, Ulid session, Ulid message, Slice part_id, bool *out_found,
                              uint16_t *out_index);
