// Writes on sessions sent twice with one operation_id.

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "session_steps.h"

static uint64_t newest_event(Fixture *f)
{
    return CALL_OK(f, stats, Stats, {.base.n_unknown_fields = 0})->newest_event_sequence;
}

// Sends a write twice and then another request with its operation_id: the second one changes
// nothing, the third is refused. Returns the second reply.
#define REPLAY_OK(f, name, Name, request, other_request)                                           \
    ({                                                                                             \
        CALL_OK_WITH((f), "op", name, Name, request);                                              \
        uint64_t newest = newest_event(f);                                                         \
        (f)->now_ms += 1000;                                                                       \
        Name##Response *replayed = CALL_OK_WITH((f), "op", name, Name, request);                   \
        CHECK_EQ(newest_event(f), newest);                                                         \
        CALL_FAILS_WITH((f), "op", name, Name, "OPERATION_ID_REUSED", other_request);              \
        CHECK_EQ((f)->status.code, STATUS_ABORTED);                                                \
        CHECK_EQ(newest_event(f), newest);                                                         \
        replayed;                                                                                  \
    })

TEST(replayed_create_returns_the_first_session)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    NewSession wanted = new_session(), other = new_session();
    wanted.slug = "s";
    wanted.system_prompt = "be good";
    CreateSessionRequest request = {.session = &wanted, .slug_policy = SLUG_POLICY_UNIQUE};
    CreateSessionRequest other_request = {.session = &other};
    Session *session = REPLAY_OK(f, create_session, CreateSession, request, other_request)->session;
    ListSessionsResponse *list = CALL_OK(f, list_sessions, ListSessions, {.limit = 0});
    CHECK_EQ(list->n_sessions, 1);
    CHECK_STR(session->id, list->sessions[0]->id);
    CHECK_STR(session->slug, "s");
    CHECK_STR(session->system_prompt, "");
    CHECK_EQ(session->created_at, f->now_ms - 1000);
}

TEST(replayed_fork_returns_the_first_fork)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *m1 = append_ok(f, s, ROLE_USER, "m1");
    ForkSessionRequest request = {.session_id = CHARS(s),
                                  .fork_point_case = FORK_SESSION_REQUEST__FORK_POINT_AT_HEAD,
                                  .at_head = true};
    ForkSessionRequest other = request;
    other.slug = "other";
    Session *fork = REPLAY_OK(f, fork_session, ForkSession, request, other)->session;
    CHECK_STR(fork->fork_message_id, m1);
    append_ok(f, s, ROLE_USER, "m2"); // the head has moved: the replay is still the first fork
    CHECK_STR(CALL_OK_WITH(f, "op", fork_session, ForkSession, request)->session->id, fork->id);
    CHECK_EQ(CALL_OK(f, list_sessions, ListSessions, {.limit = 0})->n_sessions, 2);
}

TEST(replayed_rename_returns_the_record_as_it_is_now)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    RenameSessionRequest request = {.session_id = CHARS(s), .slug = "a"};
    RenameSessionRequest other = {.session_id = CHARS(s), .slug = "b"};
    CHECK_STR(REPLAY_OK(f, rename_session, RenameSession, request, other)->session->slug, "a");
    CALL_OK(f, rename_session, RenameSession, other);
    CHECK_STR(CALL_OK_WITH(f, "op", rename_session, RenameSession, request)->session->slug, "b");
    delete_ok(f, s); // the replay runs nothing, so nothing refuses it
    CHECK_STR(CALL_OK_WITH(f, "op", rename_session, RenameSession, request)->session->slug, "b");
}

TEST(replayed_update_changes_nothing_twice)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    SessionField mask = SESSION_FIELD_TITLE;
    UpdateSessionRequest request = {
        .session_id = CHARS(s), .n_mask = 1, .mask = &mask, .title = "a"};
    UpdateSessionRequest other = request;
    other.title = "b";
    Session *updated = REPLAY_OK(f, update_session, UpdateSession, request, other)->session;
    CHECK_STR(updated->title, "a");
    CHECK_EQ(updated->updated_at, f->now_ms - 1000);
    archive_ok(f, s, true);
    CALL_OK_WITH(f, "op", update_session, UpdateSession, request);
}

TEST(replayed_totals_are_added_once)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    Totals delta = {.input_tokens = 5}, other_delta = {.input_tokens = 6};
    UpdateSessionTotalsRequest request = {.session_id = CHARS(s), .delta = &delta};
    UpdateSessionTotalsRequest other = {.session_id = CHARS(s), .delta = &other_delta};
    Session *updated =
        REPLAY_OK(f, update_session_totals, UpdateSessionTotals, request, other)->session;
    check_totals(updated->totals, 5, 0, 0, 0, 0);
    check_totals(get_ok(f, s)->totals, 5, 0, 0, 0, 0);
}

TEST(replayed_propagation_returns_the_first_receipt)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *sub = subagent_ok(f, root);
    Totals delta = {.cost_nano_usd = 5}, other_delta = {.cost_nano_usd = 6};
    PropagateTotalsRequest request = {.session_id = CHARS(sub), .delta = &delta};
    PropagateTotalsRequest other = {.session_id = CHARS(sub), .delta = &other_delta};
    REPLAY_OK(f, propagate_totals, PropagateTotals, request, other);
    CALL_OK(f, propagate_totals, PropagateTotals, other);
    PropagateTotalsResponse *again =
        CALL_OK_WITH(f, "op", propagate_totals, PropagateTotals, request);
    CHECK_EQ(again->n_totals, 2);
    CHECK_STR(again->totals[0]->session_id, sub);
    check_totals(again->totals[0]->totals, 0, 0, 0, 0, 5); // as it was, not as it is
    check_totals(get_ok(f, root)->totals, 0, 0, 0, 0, 11);
}

TEST(a_long_receipt_is_replayed_whole)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    enum { DEPTH = 300 }; // several kilobytes of totals
    const char *session = session_ok(f);
    for (int i = 1; i < DEPTH; i++)
        session = subagent_ok(f, session);
    Totals delta = {.cost_nano_usd = 5};
    PropagateTotalsRequest request = {.session_id = CHARS(session), .delta = &delta};
    CALL_OK_WITH(f, "op", propagate_totals, PropagateTotals, request);
    PropagateTotalsResponse *again =
        CALL_OK_WITH(f, "op", propagate_totals, PropagateTotals, request);
    CHECK_EQ(again->n_totals, DEPTH);
    check_totals(again->totals[DEPTH - 1]->totals, 0, 0, 0, 0, 5);
}

TEST(replayed_delete_and_restore_run_once)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *other = session_ok(f);
    SoftDeleteSessionRequest delete_it = {.session_id = CHARS(s)};
    SoftDeleteSessionRequest delete_other = {.session_id = CHARS(other)};
    Session *deleted =
        REPLAY_OK(f, soft_delete_session, SoftDeleteSession, delete_it, delete_other)->session;
    CHECK_EQ(deleted->deleted_at, f->now_ms - 1000);
    restore_ok(f, s);
    deleted = CALL_OK_WITH(f, "op", soft_delete_session, SoftDeleteSession, delete_it)->session;
    CHECK_EQ(deleted->deleted_at, 0); // the record as it is now
    RestoreSessionRequest restore_it = {.session_id = CHARS(s)};
    CALL_FAILS_WITH(f, "op", restore_session, RestoreSession, "OPERATION_ID_REUSED", restore_it);
    delete_ok(f, s);
    CALL_OK_WITH(f, "op-2", restore_session, RestoreSession, restore_it);
    delete_ok(f, s);
    CALL_OK_WITH(f, "op-2", restore_session, RestoreSession, restore_it);
    CHECK(get_ok(f, s)->deleted_at != 0);
}

TEST(replayed_rewind_runs_once)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    const char *m1 = append_ok(f, s, ROLE_USER, "m1");
    append_ok(f, s, ROLE_USER, "m2");
    RewindSessionRequest request = {.session_id = CHARS(s), .message_id = CHARS(m1)};
    RewindSessionRequest other = {.session_id = CHARS(s)};
    CHECK_STR(REPLAY_OK(f, rewind_session, RewindSession, request, other)->session->head_id, m1);
    const char *n2 = append_ok(f, s, ROLE_USER, "n2");
    CHECK_STR(CALL_OK_WITH(f, "op", rewind_session, RewindSession, request)->session->head_id, n2);
    CHECK_STR(history_texts(f, s), "m1 n2");
}

TEST(replayed_purge_returns_the_first_receipt)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    append_ok(f, s, ROLE_USER, "m1");
    const char *fork = fork_ok(f, s, NULL);
    PurgeSessionRequest request = {.session_id = CHARS(s), .keep_for_forks = true};
    PurgeSessionRequest other = {.session_id = CHARS(fork)};
    CHECK(REPLAY_OK(f, purge_session, PurgeSession, request, other)->kept_for_forks);
    purge_ok(f, fork, false);
    purges_settle(f);
    PurgeSessionResponse *again = CALL_OK_WITH(f, "op", purge_session, PurgeSession, request);
    CHECK_STR(again->session_id, s);
    CHECK(again->kept_for_forks);
}

TEST(a_replay_whose_session_was_purged_names_it_and_no_more)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    NewSession wanted = new_session();
    wanted.slug = "s";
    CreateSessionRequest request = {.session = &wanted};
    const char *s = CALL_OK_WITH(f, "op", create_session, CreateSession, request)->session->id;
    purge_ok(f, s, false);
    Session *again = CALL_OK_WITH(f, "op", create_session, CreateSession, request)->session;
    CHECK_STR(again->id, s);
    CHECK_STR(again->slug, "");
    CHECK_EQ(table_rows(f, "sessions"), 0);
}

TEST(an_operation_id_is_taken_by_one_method)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    SoftDeleteSessionRequest request = {.session_id = CHARS(s)};
    CALL_OK_WITH(f, "op", soft_delete_session, SoftDeleteSession, request);
    CALL_FAILS_WITH(f, "op", purge_session, PurgeSession, "OPERATION_ID_REUSED",
                    {.session_id = CHARS(s)}); // the same body
    CALL_OK_WITH(f, "op-", restore_session, RestoreSession, {.session_id = CHARS(s)});
    CALL_OK_WITH(f, "o", purge_session, PurgeSession, {.session_id = CHARS(s)});
}

TEST(a_failed_write_does_not_take_its_operation_id)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    CALL_FAILS_WITH(f, "op", rename_session, RenameSession, "SESSION_NOT_FOUND",
                    {.session_id = UNKNOWN_ID, .slug = "a"});
    delete_ok(f, s);
    CALL_FAILS_WITH(f, "op", rename_session, RenameSession, "SESSION_DELETED",
                    {.session_id = CHARS(s), .slug = "a"});
    restore_ok(f, s);
    CALL_OK_WITH(f, "op", rename_session, RenameSession, {.session_id = CHARS(s), .slug = "a"});
    CHECK_STR(get_ok(f, s)->slug, "a");
    CHECK_EQ(table_rows(f, "operations"), 1);
}

TEST(a_write_that_changes_nothing_takes_its_operation_id_all_the_same)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    CALL_OK_WITH(f, "op", restore_session, RestoreSession, {.session_id = CHARS(s)});
    delete_ok(f, s);
    CALL_OK_WITH(f, "op", restore_session, RestoreSession, {.session_id = CHARS(s)});
    CHECK(get_ok(f, s)->deleted_at != 0);
}

TEST(an_operation_is_remembered_over_a_restart)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    NewSession wanted = new_session();
    CreateSessionRequest request = {.session = &wanted};
    const char *s = CALL_OK_WITH(f, "op", create_session, CreateSession, request)->session->id;
    fixture_reopen(f);
    CHECK_STR(CALL_OK_WITH(f, "op", create_session, CreateSession, request)->session->id, s);
}

TEST(a_retry_may_have_another_timeout)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    NewSession wanted = new_session();
    CreateSessionRequest request = {.session = &wanted};
    const char *s = CALL_OK_WITH(f, "op", create_session, CreateSession, request)->session->id;
    request.base.descriptor = &tine__v1__create_session_request__descriptor;
    fixture_fill(&request.base);
    CreateSessionResponse *response = NULL;
    TineCallOptions options = {
        .operation_id = "op", .timeout_ms = HARNESS_PATIENCE_MS, .out_status = &f->status};
    int code = tine_create_session(f->tine, &options, &request, &response);
    fixture_expect(f, code, "", __FILE__, __LINE__);
    CHECK_STR(response->session->id, s);
    protobuf_c_message_free_unpacked(&response->base, NULL);
}

TEST(an_operation_id_is_taken_at_its_limit_and_refused_past_it)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    NewSession wanted = new_session();
    CreateSessionRequest request = {.session = &wanted};
    char *fits = text_of_size(OPERATION_ID_BYTES_MAX);
    char *too_long = text_of_size(OPERATION_ID_BYTES_MAX + 1);
    const char *s = CALL_OK_WITH(f, fits, create_session, CreateSession, request)->session->id;
    CHECK_STR(CALL_OK_WITH(f, fits, create_session, CreateSession, request)->session->id, s);
    CALL_FAILS_WITH(f, too_long, create_session, CreateSession, "TOO_LONG", request);
    CALL_FAILS_WITH(f, "\xFF", create_session, CreateSession, "INVALID_UTF8", request);
    free(fits);
    free(too_long);
}

static void create_with_operation(Fixture *f, const char *operation, const char *slug)
{
    NewSession wanted = new_session();
    wanted.slug = CHARS(slug);
    CALL_OK_WITH(f, operation, create_session, CreateSession, {.session = &wanted});
}

TEST(operations_are_pruned_by_age_two_per_write)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    const char *operations[] = {"op-1", "op-2", "op-3", "op-4", "op-5"};
    for (int i = 0; i < 5; i++)
        create_with_operation(f, operations[i], "s");
    f->now_ms += OPERATION_AGE_MS_DEFAULT;
    create_with_operation(f, "at-24h", "s");
    CHECK_EQ(table_rows(f, "operations"), 6); // kept for 24 hours
    create_with_operation(f, "op-1", "s");    // a replay
    CHECK_EQ(table_rows(f, "sessions"), 12);
    f->now_ms += 1;
    session_ok(f); // without an operation_id nothing is pruned
    CHECK_EQ(table_rows(f, "operations"), 6);
    create_with_operation(f, "past-1", "s");
    CHECK_EQ(table_rows(f, "operations"), 5);
    CHECK_EQ(table_rows(f, "operations_by_age"), 5);
    create_with_operation(f, "past-2", "s");
    create_with_operation(f, "past-3", "s");
    CHECK_EQ(table_rows(f, "operations"), 4);
    create_with_operation(f, "op-1", "another"); // forgotten: a request of its own
    CHECK_EQ(CALL_OK(f, list_sessions, ListSessions, {.query = "another"})->n_sessions, 1);
}

TEST(the_age_of_operations_is_an_option)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    f->options.store.operation_age_ms_max = 1000;
    fixture_reopen(f);
    create_with_operation(f, "op-1", "s");
    f->now_ms += 1001;
    create_with_operation(f, "op-2", "s");
    CHECK_EQ(table_rows(f, "operations"), 1);
}

TEST(the_number_of_operations_is_an_option)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    f->options.store.operation_count_max = 2;
    fixture_reopen(f);
    const char *operations[] = {"op-1", "op-2", "op-3", "op-4"};
    for (int i = 0; i < 4; i++)
        create_with_operation(f, operations[i], "s");
    CHECK_EQ(table_rows(f, "operations"), 2);
    CHECK_EQ(table_rows(f, "operations_by_age"), 2);
    create_with_operation(f, "op-3", "s"); // a replay
    create_with_operation(f, "op-4", "s"); // a replay
    CHECK_EQ(table_rows(f, "sessions"), 8);
    create_with_operation(f, "op-2", "s"); // forgotten
    CHECK_EQ(table_rows(f, "sessions"), 10);
}

TEST(a_retry_runs_once_whatever_happens_to_the_wall_clock)
{
    static const int64_t hour_ms = 3600 * 1000;
    static const int64_t STEPS[] = {25 * hour_ms, -26 * hour_ms, 900000 * hour_ms,
                                    -900000 * hour_ms};
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    create_with_operation(f, "op", "s");
    for (size_t i = 0; i < sizeof(STEPS) / sizeof(*STEPS); i++) {
        fixture_step_clock(f, STEPS[i]);
        for (int j = 0; j < 3; j++)
            create_with_operation(f, i + (size_t)j == 0 ? "other" : NULL, "s");
        create_with_operation(f, "op", "s"); // a replay
        fixture_reopen(f);
        create_with_operation(f, "op", "s"); // a replay
    }
    CHECK_EQ(table_rows(f, "sessions"), 2 * (1 + 4 * 3));
    CHECK_EQ(table_rows(f, "operations"), 2);
}
