// A relaxed store whose machine went down: what was lost with the last moments is not issued again.

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "report/log.h"
#include "store/backup.h"
#include "store/open.h"
#include "store_fixture.h"

static Ulid last_id(StoreFixture *f)
{
    Txn txn;
    StoreState state;
    CHECK_EQ(txn_begin(f->store, /* is_write= */ false, NULL, NULL, &txn), ERROR_NONE);
    CHECK_EQ(txn_state(&txn, &state), ERROR_NONE);
    txn_abort(&txn);
    return state.last_id;
}

// Of that boot; nothing is flushed by itself. The clock stands still, always at the same time.
static StoreFixture *open_relaxed(const char *boot_id)
{
    StoreFixture *f = store_fixture_make();
    f->options.is_ephemeral = false;
    f->options.flush_ms = FLUSH_MS_MAX;
    f->options.boot_id = boot_id;
    store_fixture_reopen(f);
    return f;
}

typedef struct Seen {
    Ulid first, last;
    char instance[INSTANCE_ID_BYTES + 1];
} Seen;

static void open_until_killed(void)
{
    int told[2];
    char byte = 0;
    CHECK_EQ(pipe(told), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        ErrorDetail detail = {{0}};
        Store *store;
        StoreOptions options = {
            .directory = test_dir(), .flush_ms = FLUSH_MS_MAX, .boot_id = "one"};
        CHECK_EQ(store_open(&options, &detail, &store), ERROR_NONE);
        CHECK_EQ(write(told[1], &byte, 1), 1);
        for (;;)
            pause();
    }
    CHECK_EQ(read(told[0], &byte, 1), 1);
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
}

static void open_other(const char *directory, const char *boot_id, char instance[])
{
    ErrorDetail detail = {{0}};
    Store *store;
    StoreOptions options = {.directory = directory, .boot_id = boot_id};
    CHECK_EQ(store_open(&options, &detail, &store), ERROR_NONE);
    memcpy(instance, store_instance_id(store), INSTANCE_ID_BYTES + 1);
    store_close(store);
}

// flushed.mdb is of a store that was just made, data.mdb of another one.
TEST(another_store_in_the_place_of_a_new_one_is_left_alone)
{
    char other[600], from[620], to[600], before[INSTANCE_ID_BYTES + 1],
        after[INSTANCE_ID_BYTES + 1];
    snprintf(other, sizeof(other), "%s/other", test_dir());
    snprintf(from, sizeof(from), "%s/data.mdb", other);
    snprintf(to, sizeof(to), "%s/data.mdb", test_dir());
    open_other(other, "one", before);
    open_until_killed();
    CHECK_EQ(rename(from, to), 0);
    open_other(test_dir(), "two", after);
    CHECK_STR(after, before);
}

// In a process that is killed after it: a session, flushed on demand or not, and ids after it.
static Seen issue_until_killed(const char *boot_id, bool is_flushed)
{
    Seen seen;
    int told[2];
    CHECK_EQ(pipe(told), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        StoreFixture *f = open_relaxed(boot_id);
        Ulid session = primary_session(f);
        if (is_flushed) CHECK_EQ(store_flush(f->store, NULL), ERROR_NONE);
        seen.first = append_text(f, session, ROLE_USER, "lost");
        for (size_t i = 0; i < 20; i++)
            seen.last = append_text(f, session, ROLE_USER, "lost");
        snprintf(seen.instance, sizeof(seen.instance), "%s", store_instance_id(f->store));
        CHECK_EQ(write(told[1], &seen, sizeof(seen)), sizeof(seen));
        for (;;)
            pause();
    }
    CHECK_EQ(read(told[0], &seen, sizeof(seen)), sizeof(seen));
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    return seen;
}

TEST(ids_that_a_power_cut_took_back_are_not_issued_again)
{
    log_configure(LOG_OFF, STDERR_FILENO);
    Seen one = issue_until_killed("one", /* is_flushed= */ true);
    Seen two = issue_until_killed("two", /* is_flushed= */ false);
    CHECK(ulid_compare(two.first, one.last) > 0);
    CHECK(strcmp(one.instance, two.instance) != 0);
    // Of the second boot nothing was flushed but that ids were skipped.
    Seen three = issue_until_killed("three", /* is_flushed= */ false);
    CHECK(ulid_compare(three.first, two.last) > 0);
    CHECK(strcmp(two.instance, three.instance) != 0);
}

TEST(ids_go_on_as_before_after_the_death_of_a_process)
{
    Seen one = issue_until_killed("one", /* is_flushed= */ false);
    StoreFixture *f = open_relaxed("one");
    CHECK_EQ(ulid_time_ms(last_id(f)), ulid_time_ms(one.last));
    CHECK_STR(store_instance_id(f->store), one.instance);
    store_fixture_close(&f);
}

static Ulid last_id_in(const char *directory)
{
    StoreOptions options = {.directory = directory, .is_read_only = true};
    ErrorDetail detail = {{0}};
    StoreFixture f = {.store = NULL};
    CHECK_EQ(store_open(&options, &detail, &f.store), ERROR_NONE);
    Ulid last = last_id(&f);
    store_close(f.store);
    return last;
}

// data.mdb is as it was flushed at the start; all else is only in the log.
TEST(a_backup_after_a_reset_has_what_only_the_log_has)
{
    char to[600];
    snprintf(to, sizeof(to), "%s/copy", test_dir());
    Seen seen = issue_until_killed("one", /* is_flushed= */ true);
    BackupOptions options = {.from = test_dir(), .to = to, .instance_id = ""};
    ErrorDetail detail = {{0}};
    Verified verified;
    CHECK_EQ(backup_make(&options, &detail, &verified), ERROR_NONE);
    CHECK(ulid_compare(last_id_in(to), seen.last) >= 0);
    CHECK(ulid_compare(last_id_in(test_dir()), seen.last) >= 0);
}
