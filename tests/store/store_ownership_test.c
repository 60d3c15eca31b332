// Two writers that no lock keeps apart: the first one's next write fails, and the store closes.

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kv/kv.h"
#include "store_fixture.h"

static const char KEY[] = "another process was here";

// Writes a row beside the process that has the store open, without asking for its locks.
static int write_as_other(void)
{
    KvOptions options = {
        .file = {.directory = test_dir(), .map_bytes = (size_t)1 << 30},
        .tables = STORE_TABLE_OPTIONS,
        .table_count = TABLE_COUNT,
    };
    Kv *kv = NULL;
    KvTxn *txn = NULL;
    CHECK_EQ(kv_open(&options, NULL, &kv), ERROR_NONE);
    CHECK_EQ(kv_begin(kv, /* is_write= */ true, NULL, &txn), ERROR_NONE);
    CHECK_EQ(kv_put(txn, TABLE_META, slice_of(KEY), slice_of("1")), ERROR_NONE);
    CHECK_EQ(kv_commit(&txn), ERROR_NONE);
    kv_close(kv);
    return 0;
}

static void other_writes(void)
{
#if defined(__SANITIZE_THREAD__)
    SKIP("TSan lets no child of fork start threads, and who writes has a log with one");
#endif
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) _exit(write_as_other());
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

static void check_message_is_there(StoreFixture *f, Ulid session, Ulid message)
{
    Txn txn;
    CHECK_EQ(txn_begin(f->store, /* is_write= */ false, &f->arena, NULL, &txn), ERROR_NONE);
    Key key = {.size = 0};
    key_add(&key, KEY, sizeof(KEY) - 1);
    bool found;
    Slice value;
    CHECK_EQ(txn_get(&txn, TABLE_META, &key, &found, &value), ERROR_NONE);
    CHECK(found);
    Ulid owner;
    CHECK_EQ(message_owner(&txn, message, &owner), ERROR_NONE);
    CHECK(ulid_equal(owner, session));
    txn_abort(&txn);
}

TEST(a_store_that_another_process_wrote_to_closes_itself)
{
    CLEANUP(store_fixture_close) StoreFixture *f = store_fixture_open();
    f->options.is_ephemeral = false;
    store_fixture_reopen(f);
    Ulid session = primary_session(f);
    Ulid message = append_text(f, session, ROLE_USER, "acknowledged");
    other_writes();

    Txn txn;
    ErrorDetail detail = {""};
    CHECK_EQ(txn_begin(f->store, /* is_write= */ true, &f->arena, &detail, &txn), ERROR_IO);
    CHECK(strstr(detail.text, "was written to by another process") != NULL);
    CHECK(store_is_failed(f->store));
    CHECK_EQ(txn_begin(f->store, /* is_write= */ true, &f->arena, &detail, &txn), ERROR_CLOSED);
    CHECK(strstr(detail.text, "was written to by another process") != NULL);
    CHECK_EQ(txn_begin(f->store, /* is_write= */ false, &f->arena, &detail, &txn), ERROR_CLOSED);

    store_fixture_reopen(f);
    check_message_is_there(f, session, message);
    append_text(f, session, ROLE_USER, "later");
}
