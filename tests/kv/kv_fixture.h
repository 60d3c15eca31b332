// A store of two tables in the test's directory, and the steps that most tests take.

#pragma once

#include <sys/types.h>

#include "kv/durable/data_file.h"
#include "kv/durable/flush.h"
#include "kv/durable/reader_slots.h"
#include "kv/durable/recovery.h"
#include "kv/durable/trim.h"
#include "kv/kv.h"
#include "os/file_system.h"
#include "report/error_detail.h"

enum { LETTERS, NUMBERS, TABLE_COUNT };

typedef struct Fixture {
    Kv *kv;
} Fixture;

KvOptions fixture_options(void);
Fixture fixture_open(void);
void fixture_close(Fixture *fixture);

KvTxn *begin_ok(Kv *kv, bool is_write);
KvCursor *cursor_ok(KvTxn *txn, KvTable table);
void put_ok(KvTxn *txn, const char *key, const char *value);
void store_ok(Kv *kv, const char *key, const char *value); // one transaction in LETTERS
void fill_pages(Kv *kv);                                   // with rows of LETTERS
Kv *open_ok(const KvOptions *options);
Error open_error(const KvOptions *options, ErrorDetail *detail); // … which must be one

// The value of `key` in LETTERS, or "-" without one. Good until the next call.
const char *text_at(KvTxn *txn, const char *key);
const char *stored_at(Kv *kv, const char *key); // in a transaction of its own
const char *text_of(Slice bytes);

// What the movements answer: the key, or "-".
const char *seek(KvCursor *cursor, const char *key);
const char *seek_before(KvCursor *cursor, const char *key);
const char *seek_last(KvCursor *cursor);
const char *next(KvCursor *cursor);
const char *previous(KvCursor *cursor);

// Changes one bit of data.mdb wherever it has these bytes: the lowest bit of the byte `at` after
// their beginning. Returns how often they were there.
int flip_bit(const void *bytes, size_t size, size_t at);

// Runs `body` in a child of fork and returns its exit status, or -1 if it crashed.
int in_child(int (*body)(void *context), void *context);

// Starts `body` in a child of fork, waits until it calls child_is_ready, and kills it there.
void kill_when_ready(void (*body)(void));
void child_is_ready(void);
