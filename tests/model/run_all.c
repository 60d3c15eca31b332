// The stream of operations and comparisons.

#include <stdlib.h>

#include "compare.h"
#include "operate.h"
#include "store/check.h"

typedef struct Operation {
    const char *name;
    void (*run)(Run *run);
    unsigned weight;
} Operation;

static const Operation OPERATIONS[] = {
    {"append", operate_append, 500},
    {"add a marker", operate_add_marker, 20},
    {"rewind", operate_rewind, 25},
    {"delete a message", operate_delete_message, 25},
    {"purge a message", operate_purge_message, 12},
    {"append an exchange", operate_exchange, 40},
    {"replay a history", operate_replay_history, 15},
    {"append a part", operate_append_part, 40},
    {"seal a message", operate_seal_message, 15},
    {"put an original", operate_put_original, 20},
    {"get a message", operate_get_message, 10},
    {"create a session", operate_create_session, 18},
    {"fork a session", operate_fork_session, 22},
    {"update a session", operate_update_session, 30},
    {"rename a session", operate_rename_session, 20},
    {"delete a session", operate_soft_delete, 6},
    {"restore a session", operate_restore, 12},
    {"purge a session", operate_purge_session, 40},
    {"update totals", operate_update_totals, 15},
    {"propagate totals", operate_propagate_totals, 15},
    {"remember", operate_remember, 15},
    {"forget", operate_forget, 12},
    {"record a call", operate_record_call, 20},
    {"delete a call", operate_delete_call, 10},
    {"replace todos", operate_replace_todos, 12},
    {"publish an event", operate_publish_event, 15},
    {"replay", run_replay, 15},
    {"reuse an operation", run_reuse_operation, 3},
    {"read in vain", operate_read_in_vain, 5},
    {"list events in vain", operate_list_events_in_vain, 3},
    {"reopen", operate_reopen, 2},
    {"go on with pages", operate_pages, 20},
};

enum { BURST_MIN = 50, BURST_MAX = 500, SAMPLED = 2, LISTINGS = 3, CHECK_EVERY = 40 };

static unsigned weight_sum(void)
{
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof(OPERATIONS) / sizeof(*OPERATIONS); i++) {
        sum += OPERATIONS[i].weight;
    }
    return sum;
}

static void run_operation(Run *run)
{
    uint64_t die = run_below(run, weight_sum());
    const Operation *operation = OPERATIONS;
    while (die >= operation->weight)
        die -= (operation++)->weight;
    run->step++;
    if (run_chance(run, 50)) operate_move_clock(run);
    run->doing = operation->name;
    operation->run(run);
    run_forget(run);
}

// What is kept twice in the store must agree: that needs no model.
static void damage_print(void *context, const Damage *damage)
{
    (void)context;
    printf("damage: %s: %s\n", damage_name(damage->kind), damage->text);
}

static void check_store(Run *run)
{
    StoreCheckOptions options = {.found = damage_print};
    StoreCheckResult result;
    CHECK_EQ(store_check(engine_store(run->engine), &options, &result), ERROR_NONE);
    RUN_CHECK(run, result.damage_count == 0);
}

static void compare_all(Run *run)
{
    Model *model = &run->model;
    run->doing = "comparison";
    run->comparisons++;
    run_settle(run);
    compare_events(run);
    for (size_t i = 0; i < model->count; i++) {
        ModelSession *session = model->sessions[i];
        bool is_touched = session->is_touched;
        session->is_touched = false;
        if (session->is_tombstone) continue;
        if (is_touched || run_below(run, model->count) < SAMPLED) {
            compare_session(run, session, run_below(run, 10) == 0);
        }
    }
    for (int i = 0; i < LISTINGS; i++)
        compare_listing(run);
    compare_resolve(run);
    compare_cost(run);
    if (run_below(run, CHECK_EVERY) == 0) check_store(run);
}

void run_all(Run *run)
{
    size_t left = 0;
    while (run->step < run->options.operations) {
        run_operation(run);
        if (left-- > 0) continue;
        compare_all(run);
        left = BURST_MIN + run_below(run, BURST_MAX - BURST_MIN);
    }
    compare_all(run);
    for (size_t i = 0; i < run->model.count; i++) {
        ModelSession *session = run->model.sessions[i];
        if (!session->is_tombstone) compare_session(run, session, /* is_full= */ true);
    }
    check_store(run);
}
