// UpdateSessionTotals, PropagateTotals, and what appends add.

#include <stdlib.h>

#include "session_steps.h"

static Totals all_of(int64_t value)
{
    return (Totals){.input_tokens = value,
                    .output_tokens = value,
                    .cache_read_tokens = value,
                    .cache_write_tokens = value,
                    .cost_nano_usd = value};
}

static Session *update_totals_ok(Fixture *f, const char *session, Totals delta)
{
    return CALL_OK(f, update_session_totals, UpdateSessionTotals,
                   {.session_id = CHARS(session), .delta = &delta})
        ->session;
}

static PropagateTotalsResponse *propagate_ok(Fixture *f, const char *session, Totals delta)
{
    return CALL_OK(f, propagate_totals, PropagateTotals,
                   {.session_id = CHARS(session), .delta = &delta});
}

static void check_all(const Totals *totals, int64_t value)
{
    check_totals(totals, value, value, value, value, value);
}

TEST(a_delta_is_added_field_by_field)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    Totals delta = {.input_tokens = 1,
                    .output_tokens = 20,
                    .cache_read_tokens = 300,
                    .cache_write_tokens = 4000,
                    .cost_nano_usd = 50000};
    f->now_ms += 1000;
    update_totals_ok(f, s, delta);
    Session *twice = update_totals_ok(f, s, delta);
    check_totals(twice->totals, 2, 40, 600, 8000, 100000);
    check_totals(get_ok(f, s)->totals, 2, 40, 600, 8000, 100000);
    check_all(twice->own_totals, 0);
    CHECK_EQ(twice->updated_at, f->now_ms);
    CHECK_EQ(twice->last_active_at, f->now_ms - 1000);
}

TEST(a_delta_may_be_negative_and_totals_may_fall_below_zero)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    update_totals_ok(f, s, all_of(10));
    check_all(update_totals_ok(f, s, all_of(-30))->totals, -20);
    check_all(propagate_ok(f, s, all_of(-1))->totals[0]->totals, -21);
}

TEST(totals_saturate_at_both_ends_and_never_wrap)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    check_all(update_totals_ok(f, s, all_of(INT64_MAX))->totals, INT64_MAX);
    check_all(update_totals_ok(f, s, all_of(1))->totals, INT64_MAX);
    check_all(propagate_ok(f, s, all_of(INT64_MAX))->totals[0]->totals, INT64_MAX);
    check_all(update_totals_ok(f, s, all_of(INT64_MIN))->totals, -1);
    check_all(update_totals_ok(f, s, all_of(INT64_MIN))->totals, INT64_MIN);
    check_all(propagate_ok(f, s, all_of(-1))->totals[0]->totals, INT64_MIN);
    check_all(get_ok(f, s)->totals, INT64_MIN);
}

TEST(own_totals_saturate_too)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    Usage usage = {.input_tokens = INT64_MAX, .cost_nano_usd = INT64_MAX - 1};
    for (int i = 0; i < 2; i++) {
        NewMessage message = {.role = ROLE_ASSISTANT, .usage = &usage};
        CALL_OK(f, append_message, AppendMessage, {.session_id = CHARS(s), .message = &message});
    }
    check_totals(get_ok(f, s)->own_totals, INT64_MAX, 0, 0, 0, INT64_MAX);
    check_all(get_ok(f, s)->totals, 0);
}

TEST(a_delta_is_required)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    CALL_FAILS(f, update_session_totals, UpdateSessionTotals, "INVALID_ARGUMENT",
               {.session_id = CHARS(s)});
    CALL_FAILS(f, propagate_totals, PropagateTotals, "INVALID_ARGUMENT", {.session_id = CHARS(s)});
    check_all(update_totals_ok(f, s, all_of(0))->totals, 0); // present and empty is one
}

TEST(totals_of_no_session_are_not_found)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    Totals delta = all_of(1);
    CALL_FAILS(f, update_session_totals, UpdateSessionTotals, "SESSION_NOT_FOUND",
               {.session_id = UNKNOWN_ID, .delta = &delta});
    CALL_FAILS(f, propagate_totals, PropagateTotals, "SESSION_NOT_FOUND",
               {.session_id = UNKNOWN_ID, .delta = &delta});
    CALL_FAILS(f, update_session_totals, UpdateSessionTotals, "INVALID_ARGUMENT",
               {.session_id = "", .delta = &delta});
    CALL_FAILS(f, propagate_totals, PropagateTotals, "INVALID_ARGUMENT",
               {.session_id = "x", .delta = &delta});
}

TEST(money_spent_is_spent_on_deleted_and_archived_sessions_too)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    archive_ok(f, s, true);
    update_totals_ok(f, s, all_of(1));
    propagate_ok(f, s, all_of(1));
    archive_ok(f, s, false);
    delete_ok(f, s);
    update_totals_ok(f, s, all_of(1));
    propagate_ok(f, s, all_of(1));
    Session *read = get_ok(f, s);
    check_all(read->totals, 4);
    CHECK(read->deleted_at != 0);
}

TEST(propagate_on_a_session_without_a_parent_returns_it_alone)
{
    const char *s;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&s);
    PropagateTotalsResponse *moved = propagate_ok(f, s, all_of(3));
    CHECK_EQ(moved->n_totals, 1);
    CHECK_STR(moved->totals[0]->session_id, s);
    check_all(moved->totals[0]->totals, 3);
    check_all(get_ok(f, s)->totals, 3);
    check_all(get_ok(f, s)->own_totals, 0);
}

TEST(propagate_goes_through_forks_subagents_deleted_and_archived_ancestors_leaf_first)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *fork = fork_ok(f, root, NULL);
    const char *sub = subagent_ok(f, fork);
    const char *of_sub = fork_ok(f, sub, NULL);
    const char *leaf = subagent_ok(f, of_sub);
    const char *sibling = subagent_ok(f, fork);
    update_totals_ok(f, root, all_of(100));
    delete_ok(f, sub);
    archive_ok(f, fork, true);
    f->now_ms += 1000;
    PropagateTotalsResponse *moved = propagate_ok(f, leaf, all_of(7));
    const char *chain[] = {leaf, of_sub, sub, fork, root};
    CHECK_EQ(moved->n_totals, 5);
    for (size_t i = 0; i < 5; i++) {
        CHECK_STR(moved->totals[i]->session_id, chain[i]);
        check_all(moved->totals[i]->totals, i == 4 ? 107 : 7);
        Session *read = get_ok(f, chain[i]);
        check_all(read->totals, i == 4 ? 107 : 7);
        CHECK_EQ(read->updated_at, f->now_ms);
    }
    check_all(get_ok(f, sibling)->totals, 0);
    CHECK(get_ok(f, sub)->deleted_at != 0);
}

TEST(propagate_adds_up)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *left = subagent_ok(f, root), *right = subagent_ok(f, root);
    propagate_ok(f, left, all_of(1));
    propagate_ok(f, right, all_of(2));
    propagate_ok(f, root, all_of(4));
    check_all(get_ok(f, left)->totals, 1);
    check_all(get_ok(f, right)->totals, 2);
    check_all(get_ok(f, root)->totals, 7);
}

TEST(propagate_has_no_cap_1000_sessions_deep)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    enum { DEPTH = 1000 };
    const char *chain[DEPTH];
    for (int i = 0; i < DEPTH; i++) {
        chain[i] = i == 0 ? session_ok(f) : subagent_ok(f, chain[i - 1]);
    }
    PropagateTotalsResponse *moved = propagate_ok(f, chain[DEPTH - 1], all_of(1));
    CHECK_EQ(moved->n_totals, DEPTH);
    for (int i = 0; i < DEPTH; i++) {
        CHECK_STR(moved->totals[i]->session_id, chain[DEPTH - 1 - i]);
        check_all(moved->totals[i]->totals, 1);
    }
    check_all(get_ok(f, chain[0])->totals, 1);
    check_all(get_ok(f, chain[500])->totals, 1);
}

TEST(a_purged_ancestor_ends_the_chain)
{
    const char *root;
    PurgeGate gate;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    f->options.store.seam = purge_gate_seam(&gate);
    fixture_reopen(f);
    const char *middle = subagent_ok(f, root);
    const char *leaf = subagent_ok(f, middle);
    purge_and_stop_ok(f, &gate, middle, false,
                      0); // no slice runs after the purge: the leaf still names its parent
    CHECK_EQ(propagate_ok(f, leaf, all_of(1))->n_totals, 1);
    purges_settle(f);
    CHECK_STR(get_ok(f, leaf)->parent_id, "");
    CHECK_EQ(propagate_ok(f, leaf, all_of(1))->n_totals, 1);
    check_all(get_ok(f, leaf)->totals, 2);
    check_all(get_ok(f, root)->totals, 0);
}

static Receipt *append_usage(Fixture *f, const char *session, Usage *usage, bool propagate)
{
    NewMessage message = {.role = ROLE_ASSISTANT, .usage = usage};
    return CALL_OK(
               f, append_message, AppendMessage,
               {.session_id = CHARS(session), .message = &message, .propagate_usage = propagate})
        ->receipt;
}

TEST(usage_is_summed_in_own_totals_and_not_rolled_up)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *sub = subagent_ok(f, root);
    Usage usage = {.input_tokens = 1,
                   .output_tokens = 2,
                   .cache_read_tokens = 3,
                   .cache_write_tokens = 4,
                   .cost_nano_usd = 5,
                   .reasoning_tokens = 6,
                   .total_tokens = 7};
    CHECK_EQ(append_usage(f, sub, &usage, false)->n_totals, 0);
    append_usage(f, sub, &usage, false);
    check_totals(get_ok(f, sub)->own_totals, 2, 4, 6, 8, 10);
    check_all(get_ok(f, sub)->totals, 0);
    check_all(get_ok(f, root)->own_totals, 0);
    check_all(get_ok(f, root)->totals, 0);
}

TEST(propagate_usage_rolls_an_appends_usage_up_atomically)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *sub = subagent_ok(f, root);
    Usage usage = {.input_tokens = 1,
                   .output_tokens = 2,
                   .cache_read_tokens = 3,
                   .cache_write_tokens = 4,
                   .cost_nano_usd = 5};
    Receipt *receipt = append_usage(f, sub, &usage, true);
    CHECK_EQ(receipt->n_totals, 2);
    CHECK_STR(receipt->totals[0]->session_id, sub);
    CHECK_STR(receipt->totals[1]->session_id, root);
    check_totals(receipt->totals[0]->totals, 1, 2, 3, 4, 5);
    check_totals(get_ok(f, sub)->own_totals, 1, 2, 3, 4, 5);
    check_totals(get_ok(f, sub)->totals, 1, 2, 3, 4, 5);
    check_totals(get_ok(f, root)->totals, 1, 2, 3, 4, 5);
    check_all(get_ok(f, root)->own_totals, 0);
}

TEST(a_refused_append_propagates_nothing)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *sub = subagent_ok(f, root);
    Usage usage = {.input_tokens = 1};
    NewMessage message = {.role = ROLE_ASSISTANT, .usage = &usage};
    CALL_FAILS(f, append_message, AppendMessage, "HEAD_MOVED",
               {.session_id = CHARS(sub),
                .message = &message,
                .propagate_usage = true,
                .expected_head_case = APPEND_MESSAGE_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_ID,
                .expected_head_id = UNKNOWN_ID});
    check_all(get_ok(f, sub)->totals, 0);
    check_all(get_ok(f, root)->totals, 0);
}

TEST(an_append_without_usage_propagates_nothing)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *sub = subagent_ok(f, root);
    int64_t updated_at = get_ok(f, root)->updated_at;
    f->now_ms += 1000;
    CHECK_EQ(append_usage(f, sub, NULL, true)->n_totals, 0);
    CHECK_EQ(get_ok(f, root)->updated_at, updated_at);
}

TEST(the_own_totals_of_a_fork_are_its_own)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    Usage usage = {.input_tokens = 5};
    append_usage(f, root, &usage, false);
    const char *fork = fork_ok(f, root, NULL);
    check_all(get_ok(f, fork)->own_totals, 0);
    append_usage(f, fork, &usage, false);
    rewind_ok(f, fork, "");
    check_totals(get_ok(f, fork)->own_totals, 5, 0, 0, 0, 0); // they describe the log
    check_totals(get_ok(f, root)->own_totals, 5, 0, 0, 0, 0);
}
