// Messages: reads and extends the entries of a session's log.
//
// A message is stored as a header of 8 bytes followed by the encoded Message, split into chunks.
// With the header, a scan can skip and filter messages without decoding them. The encoded fields
// come from two sides: the fields that the server sets are written in front of those that the
// client sent, which were packed by the thread that received them (store/message_draft.h).

#pragma once

#include "base/limits.h"
#include "names.h"
#include "store/session.h"
#include "store/store.h"

enum {
    MESSAGE_BRIEF_END = FIELD_MESSAGE_ERROR, // fields before this one are in the first chunk
    MESSAGE_HEADER_BYTES = 8,
    MESSAGE_PREFIX_BYTES_MAX = 128, // header and server fields
    MESSAGE_BYTES_MAX = REQUEST_BYTES_MAX - 1024,
};

// The header: the first bytes of chunk 0. Flags (with the status in the upper four bits), kind,
// role and a zero have one byte each. A u32 follows: the size of the encoded message.
typedef struct MessageHeader {
    bool is_deleted;
    bool is_purged;
    bool has_call_id; // its call_id has the form of an ID
    bool has_end;     // it was sealed: fields also follow its parts
    MessageStatus status;
    MessageKind kind;
    Role role;
    uint32_t bytes; // size of the encoded Message, all chunks
} MessageHeader;

enum {
    MESSAGE_FLAG_DELETED = 1,
    MESSAGE_FLAG_PURGED = 2,
    MESSAGE_FLAG_CALL_ID = 4,
    MESSAGE_FLAG_END = 8,
    MESSAGE_FLAG_STATUS_SHIFT = 4,
};

// Decodes the header of a message. ERROR_CORRUPT: the chunk is too short.
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
    out->bytes = (uint32_t)bytes_get_u64(bytes); // the lower 32 bits
}
void message_header_encode(const MessageHeader *header, uint8_t out[MESSAGE_HEADER_BYTES]);

// Finds the session that owns a message. ERROR_MESSAGE_NOT_FOUND: there is no such message, or its
// session is being purged.
MUST_USE Error message_owner(Txn *txn, Ulid message, Ulid *out_owner);

// Reads the external ID of a message from its bytes in the first chunk, after the header. NULL: it
// has none.
MUST_USE Error message_external(Txn *txn, Slice first, External **out);

// The same from a whole first chunk. A chunk that is damaged has none.
MUST_USE Error message_external_in_chunk(Txn *txn, Slice chunk, External **out);

// Returns the key of the row of message_external that leads to a message of `session`.
static inline Key message_external_key(const External *external, Ulid session)
{
    Hash hash = hash_pair(slice_of(external->source), slice_of(external->id));
    return key_message_external(hash, session);
}

// Finds a message by its external ID within a session. `*out` is zero if there is none.
MUST_USE Error message_by_external(Txn *txn, Ulid session, const External *external, Ulid *out);

// Reads the header and the bytes of the message that are in its first chunk. `*out_first` borrows
// from the transaction. ERROR_MESSAGE_NOT_FOUND.
MUST_USE Error message_first(Txn *txn, Ulid session, Ulid message, MessageHeader *out_header,
                             Slice *out_first);

// Reads the header and all bytes of the message. `*out_bytes` borrows from the transaction or is a
// copy in its arena. ERROR_MESSAGE_NOT_FOUND.
MUST_USE Error message_bytes(Txn *txn, Ulid session, Ulid message, MessageHeader *out_header,
                             Slice *out_bytes);

// A message whose call_id names a deleted call must read as if it had no call_id. This function
// writes the field to append to such a message: an empty call_id, because the last value of a field
// counts. `*out_size` is 0 if there is nothing to append, which is the usual case. `first` is the
// bytes of the message in its first chunk.
enum { MESSAGE_CALL_PATCH_BYTES_MAX = 8 };
MUST_USE Error message_call_patch(Txn *txn, Ulid session, const MessageHeader *header, Slice first,
                                  uint8_t out[MESSAGE_CALL_PATCH_BYTES_MAX], size_t *out_size);

// Appends the message, as readers see it, to `out` as the content of the bytes field `field`.
// ERROR_MESSAGE_NOT_FOUND.
MUST_USE Error message_append_to(Txn *txn, Ulid session, Ulid message, uint32_t field, Buffer *out);

// Adds encoded fields to the end of a stored message. Rewrites only its first and its last chunk.
// `header` is the new header, except for `bytes`, which this function sets.
MUST_USE Error message_extend(Txn *txn, Ulid session, Ulid message, MessageHeader *header,
                              Slice fields);

// Fills the receipt of a stored message from the bytes in its first chunk.
MUST_USE Error message_receipt(Txn *txn, Slice first, Receipt *out);

// Returns whether an encoded message has a text part that is not empty.
bool message_has_text(Slice bytes);

// Joins the text parts of an encoded message that are not empty, with a space between them. `*out`
// holds at least as much of them as a preview does. It borrows from `bytes` or is in the arena.
// ERROR_OUT_OF_MEMORY, ERROR_TOO_LONG (the arena's budget).
MUST_USE Error message_text(Arena *arena, Slice bytes, Slice *out);

// Returns the five numbers of a usage that totals count.
Totals message_usage_totals(const Usage *usage);
