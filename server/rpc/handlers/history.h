// Functions for the handlers that return a history in pages.

#pragma once

#include "rpc/cursor.h"
#include "rpc/rpc.h"
#include "store/history.h"

typedef struct HistoryRequest {
    const char *session_id;
    const MessageKind *kinds;
    size_t kind_count;
    bool newest_first;
    uint32_t limit;
    const char *cursor;
    uint32_t page_bytes;
    const char *through_message_id; // "": the head
} HistoryRequest;

typedef struct HistoryPage {
    Ulid session;
    SegmentList segments;
    HistoryQuery query;
    Cursor cursor;
    bool is_later_page;
} HistoryPage;

// Reads the request and finds the history as it was at the first page, or that through an entry.
// Returns ERROR_INVALID_ARGUMENT, ERROR_SESSION_NOT_FOUND, and for that entry
// ERROR_MESSAGE_NOT_FOUND, ERROR_NOT_IN_TREE.
MUST_USE Error history_begin(Rpc *rpc, const HistoryRequest *request, HistoryPage *page);

// Limits the page to the live window. Appends the marker to the reply of the first page.
MUST_USE Error history_window(Rpc *rpc, HistoryPage *page, uint32_t marker_field);

// Appends the entries of the page to the reply and makes the cursor of the next page.
MUST_USE Error history_finish(Rpc *rpc, HistoryPage *page, char **out_cursor);
