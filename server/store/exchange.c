// Exchanges. A replay compares the history with the messages that were sent, in the same
// transaction that appends the rest. So of two clients that send the same messages at once, only
// one appends them.

#include "store/exchange.h"

#include "store/call_record.h"
#include "store/history.h"
#include "store/message_append.h"
#include "store/message_like.h"
#include "store/totals.h"

typedef struct Replay {
    const Exchange *exchange;
    const char *system_prompt;
    size_t at;         // index of the message that the next entry must equal
    bool is_begun;     // the history has an entry
    bool is_exhausted; // all messages that were sent are in the history
} Replay;

static Error diverged(Txn *txn, const Replay *replay, Ulid stored)
{
    char text[ULID_TEXT_BYTES + 1];
    ulid_format(stored, text);
    return error_say(
        txn->detail, ERROR_HISTORY_DIVERGED,
        "messages[%zu] differs from message %s, which the history has at its place; nothing was "
        "appended; read the history and send it unchanged, or append without replay",
        replay->at, text);
}

// Compares an entry of the history with the message at its place. A session's system prompt is not
// an entry, so the first message may be skipped if it is that prompt.
static Error replay_entry(Txn *txn, Replay *replay, const MessageRow *row)
{
    const MessageDraft *drafts = replay->exchange->drafts;
    MessageHeader header;
    Slice bytes;
    Message *stored;
    Error error = message_bytes(txn, row->session, row->id, &header, &bytes);
    if (!error) error = txn_decode(txn, &message__descriptor, bytes, &stored);
    if (error) return error;
    bool is_like = message_is_like(drafts[replay->at].message, stored);
    if (!is_like && !replay->is_begun &&
        message_is_prompt(drafts[0].message, replay->system_prompt)) {
        replay->at = 1;
        replay->is_exhausted = replay->exchange->count == 1;
        is_like = replay->is_exhausted || message_is_like(drafts[1].message, stored);
    }
    replay->is_begun = true;
    if (!is_like) return diverged(txn, replay, row->id);
    if (!replay->is_exhausted) replay->at++;
    replay->is_exhausted = replay->at == replay->exchange->count;
    return ERROR_NONE;
}

static Error replay_segment(Txn *txn, MessageScan *scan, const Segment *segment, Replay *replay)
{
    message_scan_start(scan, segment, /* is_newest_first= */ false);
    while (!replay->is_exhausted) {
        const MessageRow *row;
        bool found;
        Error error = message_scan_next(scan, &found, &row);
        if (error || !found) return error;
        bool is_of_history =
            !row->header.is_deleted && (history_kinds_default() >> row->header.kind & 1u);
        if (is_of_history) error = replay_entry(txn, replay, row);
        if (error) return error;
    }
    return ERROR_NONE;
}

// Counts the messages that the history already has, including the system prompt.
static Error replay_skip(Txn *txn, const Exchange *exchange, size_t *out_skipped)
{
    Session *settings;
    SegmentList segments;
    MessageScan scan;
    Error error = session_settings(txn, exchange->session, &settings);
    if (!error) error = origin_segments(txn, exchange->session, ULID_MAX, &segments);
    if (!error) error = message_scan_open(&scan, txn);
    if (error) return error;
    Replay replay = {.exchange = exchange, .system_prompt = settings->system_prompt};
    for (size_t i = segments.count; !error && i > 0; i--) {
        error = replay_segment(txn, &scan, &segments.segments[i - 1], &replay);
    }
    message_scan_close(&scan);
    if (!replay.is_begun && message_is_prompt(exchange->drafts[0].message, settings->system_prompt))
        replay.at = 1;
    *out_skipped = replay.at;
    return error;
}

// Appends the messages from number `first` on. Stores the head record once, after the last one.
static Error append_messages(Txn *txn, const Exchange *exchange, Session *head, size_t first,
                             AppendExchangeResponse *out)
{
    size_t count = exchange->count - first;
    int64_t old_active = head->last_active_at;
    out->receipts = arena_array(txn->arena, Receipt *, count);
    if (!out->receipts) return arena_error(txn->arena);
    for (size_t i = 0; i < count; i++) {
        const MessageDraft *draft = &exchange->drafts[first + i];
        bool is_first = i == 0;
        MessageAppend append = {
            .session = exchange->session,
            .has_parent = is_first && exchange->has_parent,
            .parent = exchange->parent,
            .draft = draft,
        };
        Receipt *receipt = arena_new(txn->arena, Receipt);
        if (!receipt) return arena_error(txn->arena);
        tine__v1__receipt__init(receipt);
        Ulid id;
        Error error = message_append_with_head(txn, head, &append, receipt, &id);
        if (error) return error;
        out->receipts[out->n_receipts++] = receipt;
    }
    return head_store(txn, exchange->session, head, old_active);
}

static Error put_call(Txn *txn, const Exchange *exchange, Ulid id, AppendExchangeResponse *out)
{
    CallReceipt *receipt = arena_new(txn->arena, CallReceipt);
    if (!receipt) return arena_error(txn->arena);
    tine__v1__call_receipt__init(receipt);
    CallRecordPut put = {exchange->session, exchange->call, exchange->propagate_usage};
    Error error = call_record_put(txn, &put, id, receipt);
    out->call = receipt;
    out->totals = receipt->totals; // listed in the reply itself, not again in the call's receipt
    out->n_totals = receipt->n_totals;
    receipt->totals = NULL;
    receipt->n_totals = 0;
    return error;
}

// Records the call of a replay that has no message to add. An answer that repeats an earlier one
// was still paid for.
static Error put_call_alone(Txn *txn, const Exchange *exchange, AppendExchangeResponse *out)
{
    bool is_known;
    Error error = call_record_is_known(txn, exchange->session, exchange->call, &is_known);
    if (error || is_known) return error;
    return put_call(txn, exchange, txn_issue_id(txn), out);
}

static Error propagate_messages(Txn *txn, const Exchange *exchange, size_t first,
                                AppendExchangeResponse *out)
{
    Totals sum = TOTALS__INIT;
    bool has_usage = false;
    for (size_t i = first; i < exchange->count; i++) {
        totals_add(&sum, &exchange->drafts[i].usage);
        has_usage = has_usage || exchange->drafts[i].has_usage;
    }
    if (!has_usage) return ERROR_NONE;
    return totals_propagate_call(txn, exchange->session, &sum, &out->totals, &out->n_totals);
}

// Checks that the head is the entry that the caller names by its ID or by its external ID.
static Error expect_head(Txn *txn, const Exchange *exchange, const Session *head)
{
    Ulid expected = exchange->expected_head;
    const External *external = exchange->expected_external;
    if (!external) return head_expect(txn, head, expected);
    Error error = message_by_external(txn, exchange->session, external, &expected);
    if (error || !ulid_is_zero(expected)) return error ? error : head_expect(txn, head, expected);
    return error_say(txn->detail, ERROR_HEAD_MOVED,
                     "no entry of the session has external ID '%s' from source '%s', which was "
                     "expected at the head; read the session and try again",
                     external->id, external->source);
}

Error exchange_append(Txn *txn, const Exchange *exchange, AppendExchangeResponse *out)
{
    Session *head;
    size_t first = 0;
    Error error = session_head_for_write(txn, exchange->session, &head);
    if (!error && exchange->has_expected_head) error = expect_head(txn, exchange, head);
    if (!error && exchange->is_replay) error = replay_skip(txn, exchange, &first);
    if (error) return error;
    out->skipped_count = (uint32_t)first;
    const NewCall *call = exchange->call;
    if (first == exchange->count) return call ? put_call_alone(txn, exchange, out) : ERROR_NONE;

    if (call) error = call_external_check(txn, call);
    if (error) return error;
    Ulid call_id = call ? txn_issue_id(txn) : ULID_ZERO;
    for (size_t i = first; i < exchange->count; i++) {
        message_draft_set_call(&exchange->drafts[i], call_id);
    }
    error = append_messages(txn, exchange, head, first, out);
    if (!error && call) error = put_call(txn, exchange, call_id, out);
    if (error || !exchange->propagate_usage || (call && call->usage)) return error;
    return propagate_messages(txn, exchange, first, out);
}
