// Copies of a store, and a copy that becomes a store of its own.

#include "store/copy.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check_day.h"
#include "store/event.h"
#include "store/open.h"

static const char *path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
    return path;
}

static void copy_ok(const char *from, const char *to, bool is_compact)
{
    StoreCopy copy = {.from = from, .to = to, .is_compact = is_compact};
    ErrorDetail detail = {""};
    Error error = store_copy(&copy, &detail);
    CHECK_STR(detail.text, "");
    CHECK_EQ(error, ERROR_NONE);
}

static void copy_fails(const char *from, const char *to, Error expected, const char *word)
{
    StoreCopy copy = {.from = from, .to = to};
    ErrorDetail detail = {""};
    CHECK_EQ(store_copy(&copy, &detail), expected);
    printf("%s\n", detail.text);
    CHECK(strstr(detail.text, word) != NULL);
}

// Makes the fixture's store the copy of this name.
static void become(StoreFixture *f, const char *name)
{
    static char directory[512];
    store_close(f->store);
    f->store = NULL;
    snprintf(directory, sizeof(directory), "%s", path_of(name));
    f->options.directory = directory;
    store_fixture_reopen(f);
}

// A busy day's store, closed, with two copies of it, and the plain one in its place.
static StoreFixture *copied_day(Day *day)
{
    StoreFixture *f = busy_day(day);
    store_close(f->store);
    f->store = NULL;
    copy_ok(test_dir(), path_of("plain"), /* is_compact= */ false);
    copy_ok(test_dir(), path_of("compact"), /* is_compact= */ true);
    become(f, "plain");
    return f;
}

TEST(a_copy_is_the_same_store)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = copied_day(&day);
    for (int is_compact = 0; is_compact < 2; is_compact++) {
        Found found;
        check_store(f, &found);
        CHECK_STR(found.text, "");
        CHECK(found.result.messages > 0 && found.result.events > 0);
        append_text(f, day.root, ROLE_USER, "one more");
        check_clean(f);
        become(f, "compact");
    }
}

TEST(a_copy_is_not_made_over_something_nor_of_nothing)
{
    CHECK_EQ(mkdir(path_of("there"), 0700), 0);
    StoreOptions options = {.directory = path_of("from"), .is_ephemeral = true};
    Store *store = NULL;
    CHECK_EQ(store_open(&options, NULL, &store), ERROR_NONE);
    store_close(store);
    char from[512];
    snprintf(from, sizeof(from), "%s", path_of("from"));
    copy_fails(from, path_of("there"), ERROR_INVALID_ARGUMENT, "already exists");
    copy_fails(from, path_of("not/there"), ERROR_IO, "cannot create");
    copy_fails(path_of("there"), "/", ERROR_IO, "data.mdb");
    CHECK(access(path_of("not"), F_OK) != 0);
}

TEST(a_renewed_copy_is_another_store_without_events)
{
    Day day;
    CLEANUP(store_fixture_close) StoreFixture *f = copied_day(&day);
    char before[INSTANCE_ID_BYTES + 1];
    snprintf(before, sizeof(before), "%s", store_instance_id(f->store));
    Txn *txn = step_begin(f);
    uint64_t last = txn->state.last_event_sequence;
    step_end(f);
    ErrorDetail detail = {""};
    CHECK_EQ(store_renew(f->store, &detail), ERROR_NONE);
    store_fixture_reopen(f);
    CHECK(strcmp(before, store_instance_id(f->store)) != 0);
    Found found;
    check_store(f, &found);
    CHECK_STR(found.text, "");
    CHECK_EQ(found.result.events, 0);
    append_text(f, day.root, ROLE_USER, "the first event");
    txn = step_begin(f);
    CHECK(txn->state.last_event_sequence > last);
    step_end(f);
    check_clean(f);
    run_purges(f);
    check_clean(f);
}

TEST(a_read_only_store_is_not_made_and_not_written)
{
    ErrorDetail detail = {""};
    StoreOptions options = {.directory = path_of("none"), .is_read_only = true};
    Store *store = NULL;
    CHECK_EQ(store_open(&options, &detail, &store), ERROR_IO);
    CHECK(strstr(detail.text, "there is no store in") != NULL);
    CHECK(access(path_of("none"), F_OK) != 0);

    options.is_read_only = false;
    CHECK_EQ(store_open(&options, &detail, &store), ERROR_NONE);
    store_close(store);
    options.is_read_only = true;
    CHECK_EQ(store_open(&options, &detail, &store), ERROR_NONE);
    Txn txn;
    CHECK_EQ(txn_begin(store, /* is_write= */ true, NULL, &detail, &txn), ERROR_INVALID_ARGUMENT);
    StoreCheckResult result;
    CHECK_EQ(store_check(store, NULL, &result), ERROR_NONE);
    CHECK_EQ(result.damage_count, 0);
    store_close(store);
}
