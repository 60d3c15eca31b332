// Loans: the parts of a reply that borrows pieces, and the copy that ends the loan.

#include "rpc/loan.h"

#include <stdlib.h>

#include "base/limits.h"
#include "harness.h"
#include "os/random.h"

enum { LENT_BYTES = 4096, PIECES_MAX = 700, GAP = 16 };

// A reply of random pieces, and the same in one buffer.
typedef struct Pair {
    Arena arena;
    Loan loan;
    Buffer reply, whole;
} Pair;

static void pair_close(Pair *pair)
{
    loan_end(&pair->loan);
    buffer_free(&pair->reply);
    buffer_free(&pair->whole);
    arena_free(&pair->arena);
}

static const uint8_t *lent_bytes(void)
{
    static uint8_t bytes[LENT_BYTES];
    for (size_t i = 0; i < LENT_BYTES; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 256);
    return bytes;
}

static void append(Buffer *buffer, Slice bytes)
{
    CHECK_EQ(buffer_append(buffer, bytes), ERROR_NONE);
}

// Sometimes two lent pieces follow each other, or none is lent at all.
static void pair_open(Pair *pair, Random *random, size_t piece_count)
{
    *pair = (Pair){.reply = {.bytes = NULL}};
    arena_init(&pair->arena, RUN_BUDGET_BYTES);
    CHECK_EQ(buffer_reset(&pair->reply, GAP), ERROR_NONE);
    CHECK_EQ(buffer_reset(&pair->whole, GAP), ERROR_NONE);
    for (size_t i = 0; i < piece_count; i++) {
        size_t size = 1 + random_below(random, LENT_BYTES / 8);
        Slice bytes = slice(lent_bytes() + random_below(random, LENT_BYTES - size), size);
        append(&pair->whole, bytes);
        if (random_below(random, 3) > 0) {
            CHECK_EQ(loan_add(&pair->loan, &pair->arena, &pair->reply, bytes), ERROR_NONE);
        } else {
            append(&pair->reply, bytes);
        }
    }
    buffer_prepend(&pair->reply, slice_of("front"));
    buffer_prepend(&pair->whole, slice_of("front"));
    CHECK_EQ(loan_reply_bytes(&pair->loan, &pair->reply), buffer_size(&pair->whole));
}

static void check_parts(const Pair *pair, size_t from, size_t count_max)
{
    struct iovec parts[8];
    Slice rest = slice_skip(buffer_slice(&pair->whole), from);
    while (rest.size > 0) {
        size_t count = loan_parts(&pair->loan, &pair->reply, from, count_max, parts);
        CHECK(count >= 1 && count <= count_max);
        for (size_t i = 0; i < count; i++) {
            CHECK(parts[i].iov_len > 0 && parts[i].iov_len <= rest.size);
            CHECK(memcmp(parts[i].iov_base, rest.bytes, parts[i].iov_len) == 0);
            rest = slice_skip(rest, parts[i].iov_len);
            from += parts[i].iov_len;
        }
    }
    CHECK_EQ(loan_parts(&pair->loan, &pair->reply, from, count_max, parts), 0);
}

TEST(loan_parts_are_the_reply_from_every_byte_on)
{
    Random random;
    random_seed(&random, test_seed());
    for (size_t i = 0; i < 40; i++) {
        CLEANUP(pair_close) Pair pair;
        pair_open(&pair, &random, i % 8);
        for (size_t from = 0; from <= buffer_size(&pair.whole); from++)
            check_parts(&pair, from, 1 + from % 8);
    }
}

TEST(loan_of_many_pieces_has_the_same_bytes_settled_from_any_byte_on)
{
    Random random;
    random_seed(&random, test_seed());
    for (size_t i = 0; i < 40; i++) {
        CLEANUP(pair_close) Pair pair;
        pair_open(&pair, &random, random_below(&random, PIECES_MAX));
        check_parts(&pair, 0, 8);
        size_t size = buffer_size(&pair.whole), from = random_below(&random, size + 1);
        CHECK_EQ(loan_settle(&pair.loan, &pair.reply, from), ERROR_NONE);
        CHECK_EQ(pair.loan.count, 0);
        CHECK_EQ(loan_reply_bytes(&pair.loan, &pair.reply), size);
        check_parts(&pair, from, 8);
    }
}

TEST(loan_beyond_the_budget_of_the_arena_is_refused)
{
    CLEANUP(pair_close) Pair pair = {.reply = {.bytes = NULL}};
    arena_init(&pair.arena, 16 * 1024);
    Error error = ERROR_NONE;
    while (!error)
        error = loan_add(&pair.loan, &pair.arena, &pair.reply, slice(lent_bytes(), LENT_BYTES));
    CHECK_EQ(error, ERROR_TOO_LONG);
    CHECK_EQ(pair.loan.bytes, pair.loan.count * LENT_BYTES);
}
