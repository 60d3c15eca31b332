// Scans of a session's log: entry by entry, in either order, without decoding.

#pragma once

#include "store/message.h"
#include "store/origin.h"

typedef struct MessageRow {
    Ulid session;
    Ulid id;
    MessageHeader header;
    Slice first;        // the message's bytes in the first chunk; borrowed until the scan moves
    size_t reply_bytes; // of the message as it reads: with what message_call_patch adds
} MessageRow;

typedef struct MessageScan {
    Txn *txn;
    KvCursor *cursor;
    Segment segment;
    bool is_newest_first;
    bool is_started;
    MessageRow row;                              // where the scan stands
    uint8_t patch[MESSAGE_CALL_PATCH_BYTES_MAX]; // of that row
} MessageScan;

MUST_USE Error message_scan_open(MessageScan *scan, Txn *txn);
void message_scan_close(MessageScan *scan); // allowed on a zeroed scan

// Starts over on a segment.
void message_scan_start(MessageScan *scan, const Segment *segment, bool is_newest_first);

// The next entry of the segment, deleted ones too. `*out_row` is borrowed until the next call.
MUST_USE Error message_scan_next(MessageScan *scan, bool *out_found, const MessageRow **out_row);

// The row's record in pieces, as it is stored: they borrow from the transaction and from the scan,
// until it moves on; the array is in the transaction's arena.
MUST_USE Error message_scan_pieces(MessageScan *scan, const Slice **out_pieces, size_t *out_count);

// Appends the entry the scan stands on to `out` as the content of the bytes field `field`.
MUST_USE Error message_scan_append_to(MessageScan *scan, uint32_t field, Buffer *out);
