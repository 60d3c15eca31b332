// Messages: the entries of one session's log, in id order.
//
// A message is stored as a head of 8 bytes and the Message's wire bytes, split into chunks. The
// head lets a scan skip and filter without decoding. The bytes come from two sides: the server's
// fields stand in front of what the client's half packed on the thread that received it
// (MessageDraft).

#pragma once

#include "base/limits.h"
#include "names.h"
#include "store/session.h"
#include "store/store.h"

enum {
    MESSAGE_BRIEF_END = FIELD_MESSAGE_ERROR, // all fields before this one are in the first chunk
    MESSAGE_HEADER_BYTES = 8,
    MESSAGE_PREFIX_BYTES_MAX = 128, // head and server fields
    MESSAGE_BYTES_MAX = REQUEST_BYTES_MAX - 1024,
};

// The first bytes of chunk 0: {flags, kind, role, reserved, total bytes u32}.
typedef struct MessageHeader {
    bool is_deleted;
    bool is_purged;
    bool has_call_id; // its call_id has the form of an id of ours
    bool has_end;     // it was sealed: what ended it stands behind its parts
    MessageStatus status;
    MessageKind kind;
    Role role;
    uint32_t bytes; // of the Message, all chunks together
} MessageHeader;

enum {
    MESSAGE_FLAG_DELETED = 1,
    MESSAGE_FLAG_PURGED = 2,
    MESSAGE_FLAG_CALL_ID = 4,
    MESSAGE_FLAG_END = 8,
    MESSAGE_FLAG_STATUS_SHIFT = 4,
};

MUST_USE Error message_header_decode(Txn *txn, Slice first_chunk, MessageHeader *out);
static inline void message_header_unpack(const uint8_t bytes[MESSAGE_HEADER_BYTES],
                                         MessageHeader *out)
{
    out->is_deleted = bytes[0] & MESSAGE_FLAG_DELETED;
    out->is_purged = bytes[0] & MESSAGE_FLAG_PURGED;
    out->has_call_id = bytes[0] & MESSAGE_FLAG_CALL_ID;
    out->has_end = bytes[0] & MESSAGE_FLAG_END;
    out->status = (MessageStatus)(bytes[0] >> MESSAGE_FLAG_STATUS_SHIFT);
    out->kind = (MessageKind)bytes[1];
    out->role = (Role)bytes[2];
    out->bytes = (uint32_t)bytes_get_u64(bytes); // the lower half
}
void message_header_encode(const MessageHeader *header, uint8_t out[MESSAGE_HEADER_BYTES]);

// The session that owns a message. ERROR_MESSAGE_NOT_FOUND, also while its session is being purged.
MUST_USE Error message_owner(Txn *txn, Ulid message, Ulid *out_owner);

// Finds a message by its external id within a session; zero if there is none.
MUST_USE Error message_by_external(Txn *txn, Ulid session, const External *external, Ulid *out);

// The head and the first chunk's message bytes. `out_first` borrows from the transaction.
// ERROR_MESSAGE_NOT_FOUND.
MUST_USE Error message_first(Txn *txn, Ulid session, Ulid message, MessageHeader *out_header,
                             Slice *out_first);

// All of the message's bytes: borrowed from the transaction or copied into its arena.
MUST_USE Error message_bytes(Txn *txn, Ulid session, Ulid message, MessageHeader *out_header,
                             Slice *out_bytes);

// Writes what makes a message's call_id read as none, because it names no call of `session` that is
// there: the last value of a field wins. Returns the bytes by which the message grows, often 0.
// `first` are its bytes in the first chunk.
enum { MESSAGE_CALL_PATCH_BYTES_MAX = 8 };
MUST_USE Error message_call_patch(Txn *txn, Ulid session, const MessageHeader *header, Slice first,
                                  uint8_t out[MESSAGE_CALL_PATCH_BYTES_MAX], size_t *out_size);

// Appends the message, as it reads, to `out` as the content of the bytes field `field`.
MUST_USE Error message_append_to(Txn *txn, Ulid session, Ulid message, uint32_t field, Buffer *out);

// Adds encoded fields to the end of a stored message, touching its first and last chunk alone.
// `head` is the new head but for `bytes`, which is set here.
MUST_USE Error message_extend(Txn *txn, Ulid session, Ulid message, MessageHeader *header,
                              Slice fields);

// Fills the receipt of a stored message from its first chunk.
MUST_USE Error message_receipt(Txn *txn, Slice first, Receipt *out);

// The first non-empty text part in a message's bytes; empty if there is none.
Slice message_first_text(Slice bytes);

// A usage's or a delta's five numbers.
Totals message_usage_totals(const Usage *usage);
