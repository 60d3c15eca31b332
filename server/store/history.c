// Histories: pages of them.
//
// IDs rise strictly through a history, across all its segments. So two IDs bound a page, and the
// next page starts from the last entry that this one looked at. A page needs one seek for each
// segment. It copies entries from LMDB's pages into the reply without decoding them.

#include "store/history.h"

#include "base/limits.h"
#include "wire/wire.h"

uint32_t history_kinds_default(void)
{
    return 1u << MESSAGE_KIND_CONVERSATION | 1u << MESSAGE_KIND_INJECTED;
}

typedef struct PageState {
    uint32_t count;
    size_t scanned;
    Ulid last;
    bool is_full;
    size_t bytes; // of the reply so far
} PageState;

// Few queries skip system turns, so the others do not look at the role.
static bool is_skipped_system_turn(const HistoryQuery *query, const MessageRow *row)
{
    if (ulid_is_zero(query->skips_system_before)) return false;
    return row->header.kind == MESSAGE_KIND_CONVERSATION && row->header.role == ROLE_SYSTEM &&
           ulid_compare(row->id, query->skips_system_before) < 0;
}

static bool row_is_wanted(const HistoryQuery *query, const MessageRow *row)
{
    if (row->header.is_deleted) return false;
    if (query->skips_open && row->header.status == MESSAGE_STATUS_OPEN) return false;
    if (is_skipped_system_turn(query, row)) return false;
    return query->kinds >> row->header.kind & 1u;
}

// Cuts a segment to the bounds of the query. Returns false if nothing is left of it.
static bool segment_bound(const HistoryQuery *query, const Segment *segment, Segment *out)
{
    if (query->is_own_only && !ulid_equal(segment->session, query->session)) return false;
    *out = *segment;
    if (ulid_compare(query->after, out->after) > 0) out->after = query->after;
    Ulid through = ulid_equal(query->before, ULID_MAX) ? ULID_MAX : ulid_previous(query->before);
    if (ulid_compare(through, out->through) < 0) out->through = through;
    return ulid_compare(out->after, out->through) < 0;
}

// Returns whether an entry of `size` bytes does not fit into the page. The first entry of a page
// always fits, unless the reply already holds so much that no reply could hold both.
static bool is_too_much(const PageState *page, size_t size, size_t page_bytes)
{
    if (page->bytes == 0) return false;
    return page->bytes + size > (page->count > 0 ? page_bytes : CONTEXT_BYTES_MAX);
}

static Error row_lend(MessageScan *scan, const MessageSink *sink, bool *out_is_enough)
{
    const Slice *pieces;
    size_t count;
    Error error = message_scan_pieces(scan, &pieces, &count);
    return error ? error : sink->take(sink->context, pieces, count, out_is_enough);
}

static Error segment_append(MessageScan *scan, const HistoryQuery *query, const Segment *segment,
                            uint32_t field, Buffer *out, PageState *page)
{
    message_scan_start(scan, segment, query->is_newest_first);
    for (;;) {
        const MessageRow *row;
        bool found;
        Error error = message_scan_next(scan, &found, &row);
        if (error || !found) return error;
        bool is_wanted = row_is_wanted(query, row);
        size_t size = is_wanted ? wire_bytes_field_size(field, row->reply_bytes) : 0;
        page->is_full = page->scanned == SCANNED_RECORDS_MAX || page->count == query->limit ||
                        is_too_much(page, size, query->page_bytes);
        if (page->is_full) return ERROR_NONE;
        page->scanned++;
        page->last = row->id;
        if (!is_wanted) continue;
        page->bytes += size;
        page->count++;
        if (query->sink && page->bytes >= query->sink->from_bytes) {
            error = row_lend(scan, query->sink, &page->is_full);
            if (error || page->is_full) return error;
            continue;
        }
        error = message_scan_append_to(scan, field, out);
        if (error) return error;
    }
}

Error history_append_page(Txn *txn, const HistoryQuery *query, uint32_t field, Buffer *out,
                          bool *out_has_more, Ulid *out_last)
{
    MessageScan scan;
    Error error = message_scan_open(&scan, txn);
    if (error) return error;
    PageState page = {.last = query->after, .bytes = buffer_size(out)};
    size_t count = query->segments->count;
    for (size_t i = 0; !error && !page.is_full && i < count; i++) {
        size_t index = query->is_newest_first ? i : count - 1 - i;
        Segment bounded;
        if (!segment_bound(query, &query->segments->segments[index], &bounded)) continue;
        error = segment_append(&scan, query, &bounded, field, out, &page);
    }
    message_scan_close(&scan);
    *out_has_more = page.is_full;
    *out_last = page.last;
    return error;
}
