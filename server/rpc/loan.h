// Loans: what a large reply borrows from LMDB's pages instead of copying it.
//
// A reply is the used bytes of its buffer with the borrowed pieces between them. The loan owns the
// snapshot that keeps these pages. While a snapshot is open, the store reuses no page that is freed
// after it, so a loan must end soon: when the reply is sent, or by loan_settle, which copies.

#pragma once

#include <sys/uio.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "store/store.h"

typedef struct LoanPiece {
    Slice bytes;
    size_t at;          // the piece comes before this byte of the buffer's memory
    size_t lent_before; // bytes of all earlier pieces
} LoanPiece;

typedef struct Loan { // begins as zeros
    bool is_allowed;  // set by the submitter: it sends the reply by loan_parts
    Txn snapshot;     // owned; zeros: nothing is borrowed
    LoanPiece *pieces;
    size_t count, count_max; // of the pieces, which are in an arena
    size_t bytes;            // of all pieces
} Loan;

// Lends `bytes` to the reply, after what is in its buffer now. Copies nothing: the transaction from
// which `bytes` are borrowed must become the loan's snapshot. Errors as arena_error.
MUST_USE Error loan_add(Loan *loan, Arena *arena, const Buffer *reply, Slice bytes);

// Ends the snapshot and forgets the pieces.
void loan_end(Loan *loan);

static inline size_t loan_reply_bytes(const Loan *loan, const Buffer *reply)
{
    return buffer_size(reply) + loan->bytes;
}

// Finds the parts of the reply from byte `from` on, at most `count_max` (at least 1). Returns how
// many there are.
size_t loan_parts(const Loan *loan, const Buffer *reply, size_t from, size_t count_max,
                  struct iovec *out);

// Ends the loan: copies the reply from byte `from` on into a new buffer. The bytes before it are
// undefined from now on. ERROR_OUT_OF_MEMORY: nothing has changed.
MUST_USE Error loan_settle(Loan *loan, Buffer *reply, size_t from);
