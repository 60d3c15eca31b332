// Log scans: reads a session's log entry by entry, in either direction, without decoding.

#pragma once

#include "store/message.h"
#include "store/origin.h"

typedef struct MessageRow {
    Ulid session;
    Ulid id;
    MessageHeader header;
    Slice first;        // the bytes in the first chunk; borrowed until the scan moves
    size_t reply_bytes; // size in a reply, with the bytes of message_call_patch
} MessageRow;

typedef struct MessageScan {
    Txn *txn;
    KvCursor *cursor;
    Segment segment;
    bool is_newest_first;
    bool is_started;
    bool is_read;   // all chunks of the current entry: the cursor is on the last one
    MessageRow row; // the current entry
    uint8_t patch[MESSAGE_CALL_PATCH_BYTES_MAX]; // message_call_patch of the row
} MessageScan;

// Opens a scan. The caller must close it. Borrows `txn` until then.
MUST_USE Error message_scan_open(MessageScan *scan, Txn *txn);
void message_scan_close(MessageScan *scan); // `scan` may be zeroed

// Starts the scan again, on a segment.
void message_scan_start(MessageScan *scan, const Segment *segment, bool is_newest_first);

// Moves to the next entry of the segment, which may be a deleted one. `*out_row` borrows from the
// scan until the next call.
MUST_USE Error message_scan_next(MessageScan *scan, bool *out_found, const MessageRow **out_row);

// Returns the bytes of the current entry, as readers see it, in pieces. The pieces borrow from the
// transaction, and the last may borrow from the scan until it moves. The array is in the
// transaction's arena.
MUST_USE Error message_scan_pieces(MessageScan *scan, const Slice **out_pieces, size_t *out_count);

// Appends the current entry to `out` as the content of the bytes field `field`.
MUST_USE Error message_scan_append_to(MessageScan *scan, uint32_t field, Buffer *out);
