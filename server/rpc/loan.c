// Loans. A position in the reply counts the bytes of the buffer and those of the pieces before it.

#include "rpc/loan.h"

#include <stdlib.h>

enum { PIECES_MIN = 256 };

static Error make_room(Loan *loan, Arena *arena)
{
    if (loan->count < loan->count_max) return ERROR_NONE;
    size_t count_max = loan->count_max ? 2 * loan->count_max : PIECES_MIN;
    LoanPiece *pieces = arena_alloc(arena, count_max * sizeof(LoanPiece));
    if (!pieces) return arena_error(arena);
    if (loan->count > 0) memcpy(pieces, loan->pieces, loan->count * sizeof(LoanPiece));
    loan->pieces = pieces;
    loan->count_max = count_max;
    return ERROR_NONE;
}

Error loan_add(Loan *loan, Arena *arena, const Buffer *reply, Slice bytes)
{
    Error error = make_room(loan, arena);
    if (error) return error;
    loan->pieces[loan->count++] = (LoanPiece){bytes, reply->end, loan->bytes};
    loan->bytes += bytes.size;
    return ERROR_NONE;
}

void loan_end(Loan *loan)
{
    if (loan->count == 0) return;
    txn_abort(&loan->snapshot);
    loan->pieces = NULL;
    loan->count = loan->count_max = loan->bytes = 0;
}

// Returns the position of a piece's first byte.
static size_t position_of(const LoanPiece *piece, const Buffer *reply)
{
    return piece->at - reply->start + piece->lent_before;
}

// Returns the first piece that does not end at or before a position.
static size_t piece_after(const Loan *loan, const Buffer *reply, size_t position)
{
    size_t low = 0, high = loan->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const LoanPiece *piece = &loan->pieces[middle];
        if (position_of(piece, reply) + piece->bytes.size <= position) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static size_t part_add(struct iovec *out, size_t count, Slice bytes)
{
    if (bytes.size == 0) return count;
    out[count] = (struct iovec){(void *)(uintptr_t)bytes.bytes, bytes.size};
    return count + 1;
}

size_t loan_parts(const Loan *loan, const Buffer *reply, size_t from, size_t count_max,
                  struct iovec *out)
{
    size_t count = 0, i = piece_after(loan, reply, from);
    size_t lent_before = i < loan->count ? loan->pieces[i].lent_before : loan->bytes;
    size_t in_piece = 0, at = reply->start + from - lent_before; // in the buffer's memory
    if (i < loan->count && at > loan->pieces[i].at) {
        in_piece = at - loan->pieces[i].at;
        at = loan->pieces[i].at;
    }
    for (; i < loan->count && count < count_max; i++) {
        const LoanPiece *piece = &loan->pieces[i];
        count = part_add(out, count, slice(reply->bytes + at, piece->at - at));
        at = piece->at;
        if (count == count_max) return count;
        count = part_add(out, count, slice_skip(piece->bytes, in_piece));
        in_piece = 0;
    }
    if (count == count_max) return count;
    return part_add(out, count, slice(reply->bytes + at, reply->end - at));
}

Error loan_settle(Loan *loan, Buffer *reply, size_t from)
{
    enum { PARTS = 64 };
    size_t size = loan_reply_bytes(loan, reply);
    Buffer copy = {.end = size, .capacity = size};
    copy.bytes = malloc(size); // the pages before `from` are never touched
    if (!copy.bytes) return ERROR_OUT_OF_MEMORY;
    while (from < size) {
        struct iovec parts[PARTS];
        size_t count = loan_parts(loan, reply, from, PARTS, parts);
        for (size_t i = 0; i < count; i++) {
            memcpy(copy.bytes + from, parts[i].iov_base, parts[i].iov_len);
            from += parts[i].iov_len;
        }
    }
    buffer_free(reply);
    *reply = copy;
    loan_end(loan);
    return ERROR_NONE;
}
