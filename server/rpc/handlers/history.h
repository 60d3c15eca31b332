// What the handlers that page through a history share.

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

// Reads the request and finds the history, as it was at the first page, or that through an entry.
// ERROR_MESSAGE_NOT_FOUND, ERROR_NOT_IN_TREE: of that entry.
MUST_USE Error history_begin(Rpc *rpc, const HistoryRequest *request, HistoryPage *page);

// Narrows the page to the live window; on the first page the marker is appended to the reply.
MUST_USE Error history_window(Rpc *rpc, HistoryPage *page, uint32_t marker_field);

// Appends the page's entries to the reply and writes the next page's cursor.
MUST_USE Error history_finish(Rpc *rpc, HistoryPage *page, char **out_cursor);
