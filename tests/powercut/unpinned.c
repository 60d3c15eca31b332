// A pin that is let go is reset: LMDB uses its pages again, while its owner may still end it.

#define _GNU_SOURCE
#include "unpinned.h"

#include <dlfcn.h>
#include <errno.h>
#include <lmdb.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

static atomic_int fault;
static atomic_bool commit_fails;
static MDB_txn *_Atomic pin; // the last one that was renewed
static _Thread_local MDB_txn *writer;

void pin_fault(PinFault planted)
{
    atomic_store(&fault, planted);
}

void commit_fault(void)
{
    atomic_store(&commit_fails, true);
}

static void *next_of(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

int mdb_txn_begin(MDB_env *env, MDB_txn *parent, unsigned flags, MDB_txn **out)
{
    static int (*_Atomic next)(MDB_env *, MDB_txn *, unsigned, MDB_txn **);
    if (!next) next = (int (*)(MDB_env *, MDB_txn *, unsigned, MDB_txn **))next_of("mdb_txn_begin");
    int code = next(env, parent, flags, out);
    if (code == 0 && !(flags & MDB_RDONLY)) writer = *out;
    return code;
}

int mdb_txn_renew(MDB_txn *txn)
{
    static int (*_Atomic next)(MDB_txn *);
    if (!next) next = (int (*)(MDB_txn *))next_of("mdb_txn_renew");
    int code = next(txn);
    if (code != 0 || !writer) return code;
    MDB_txn *before = atomic_exchange(&pin, txn);
    if (atomic_load(&fault) == PIN_NEVER) mdb_txn_reset(txn);
    if (atomic_load(&fault) == PIN_LET_GO_EARLY && before) mdb_txn_reset(before);
    return code;
}

static void forget(const MDB_txn *txn)
{
    if (writer == txn) writer = NULL;
    MDB_txn *expected = pin;
    if (expected == txn) (void)atomic_compare_exchange_strong(&pin, &expected, NULL);
}

void mdb_txn_abort(MDB_txn *txn)
{
    static void (*_Atomic next)(MDB_txn *);
    if (!next) next = (void (*)(MDB_txn *))next_of("mdb_txn_abort");
    forget(txn);
    next(txn);
}

int mdb_txn_commit(MDB_txn *txn)
{
    static int (*_Atomic next)(MDB_txn *);
    if (!next) next = (int (*)(MDB_txn *))next_of("mdb_txn_commit");
    if (txn == writer && atomic_exchange(&commit_fails, false)) {
        mdb_txn_abort(txn);
        return ENOSPC;
    }
    forget(txn);
    return next(txn);
}
