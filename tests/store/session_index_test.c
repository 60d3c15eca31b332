// Listings by state come from an index: how many other sessions there are does not matter.

#include "base/limits.h"
#include "check_day.h"
#include "store/session_list.h"
#include "store/session_update.h"

static void set_state(StoreFixture *f, Ulid id, SessionField field, SessionStatus status)
{
    UpdateSessionRequest request = UPDATE_SESSION_REQUEST__INIT;
    request.mask = &field;
    request.n_mask = 1;
    request.status = status;
    request.archived = true;
    STEP(f, session_update(txn, id, &request));
}

// What one page has; a page that scans ends after SCANNED_RECORDS_MAX sessions.
static SessionPage first_page(StoreFixture *f, SessionQuery query)
{
    Txn txn;
    SessionPage page;
    Buffer out = {.bytes = NULL};
    CHECK_EQ(txn_begin(f->store, /* is_write= */ false, &f->arena, NULL, &txn), ERROR_NONE);
    CHECK_EQ(session_append_page(&txn, &query, 1, &out, &page), ERROR_NONE);
    txn_abort(&txn);
    buffer_free(&out);
    return page;
}

static void lists_one(StoreFixture *f, SessionQuery query, Ulid id)
{
    SessionPage page = first_page(f, query);
    CHECK_EQ(page.count, 1);
    CHECK(!page.is_more);
    CHECK(ulid_equal(page.last, id));
}

TEST(sessions_of_a_state_are_listed_past_any_number_of_others)
{
    CLEANUP(store_fixture_close) StoreFixture *f = store_fixture_open();
    SessionQuery query = session_query_all();
    Ulid first = primary_session(f);
    set_state(f, first, SESSION_FIELD_STATUS, SESSION_STATUS_BUSY);
    set_state(f, first, SESSION_FIELD_ARCHIVED, SESSION_STATUS_UNSPECIFIED);
    Txn *txn = step_begin(f);
    for (int i = 0; i <= SCANNED_RECORDS_MAX; i++) {
        Ulid id;
        SessionOrigin origin = {.is_set = false};
        CHECK_EQ(session_create(txn, new_settings(f), SLUG_POLICY_FREE, &origin, &id), ERROR_NONE);
    }
    step_end(f);

    query.status = SESSION_STATUS_BUSY;
    lists_one(f, query, first);
    query = session_query_all();
    query.archived = ARCHIVED_FILTER_ONLY;
    lists_one(f, query, first);
    query.status = SESSION_STATUS_RETRY;
    CHECK_EQ(first_page(f, query).count, 0);
}

TEST(active_sessions_are_listed_past_any_number_of_archived_ones)
{
    CLEANUP(store_fixture_close) StoreFixture *f = store_fixture_open();
    Ulid first = primary_session(f);
    Txn *txn = step_begin(f);
    for (int i = 0; i <= SCANNED_RECORDS_MAX; i++) {
        Ulid id;
        SessionOrigin origin = {.is_set = false};
        Session *settings = new_settings(f);
        settings->archived_at = f->now_ms;
        CHECK_EQ(session_create(txn, settings, SLUG_POLICY_FREE, &origin, &id), ERROR_NONE);
    }
    step_end(f);

    SessionQuery query = session_query_all();
    query.archived = ARCHIVED_FILTER_EXCLUDE;
    query.deleted = DELETED_FILTER_EXCLUDE;
    lists_one(f, query, first);
}

TEST(state_rows_follow_every_change)
{
    CLEANUP(store_fixture_close) StoreFixture *f = store_fixture_open();
    Ulid id = primary_session(f);
    SessionQuery busy = session_query_all(), active = session_query_all();
    busy.status = SESSION_STATUS_BUSY;
    active.archived = ARCHIVED_FILTER_EXCLUDE;
    active.deleted = DELETED_FILTER_EXCLUDE;
    set_state(f, id, SESSION_FIELD_STATUS, SESSION_STATUS_BUSY);
    lists_one(f, busy, id);
    STEP(f, session_rename(txn, id, "renamed", SLUG_POLICY_FREE));
    lists_one(f, busy, id);
    lists_one(f, active, id);
    STEP(f, session_set_deleted(txn, id, /* is_deleted= */ true));
    CHECK_EQ(first_page(f, active).count, 0);
    STEP(f, session_set_deleted(txn, id, /* is_deleted= */ false));
    set_state(f, id, SESSION_FIELD_STATUS, SESSION_STATUS_IDLE);
    CHECK_EQ(first_page(f, busy).count, 0);
    lists_one(f, active, id);
    check_clean(f);
}
