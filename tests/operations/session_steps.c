// Steps on sessions that several tests take.

#include "session_steps.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

NewSession new_session(void)
{
    static ModelRef model = {.provider = "anthropic", .name = "model-1"};
    return (NewSession){.project_dir = "/project", .model = &model};
}

Session *create_ok(Fixture *f, NewSession *wanted)
{
    return CALL_OK(f, create_session, CreateSession, {.session = wanted})->session;
}

const char *slug_session_ok(Fixture *f, const char *slug)
{
    NewSession wanted = new_session();
    wanted.slug = CHARS(slug);
    return create_ok(f, &wanted)->id;
}

Session *fork_before_ok(Fixture *f, const char *session, const char *before)
{
    return CALL_OK(f, fork_session, ForkSession,
                   {.session_id = CHARS(session),
                    .fork_point_case = FORK_SESSION_REQUEST__FORK_POINT_BEFORE_MESSAGE_ID,
                    .before_message_id = CHARS(before)})
        ->session;
}

Session *fork_at_head_ok(Fixture *f, const char *session)
{
    return CALL_OK(f, fork_session, ForkSession,
                   {.session_id = CHARS(session),
                    .fork_point_case = FORK_SESSION_REQUEST__FORK_POINT_AT_HEAD,
                    .at_head = true})
        ->session;
}

Session *rewind_ok(Fixture *f, const char *session, const char *message)
{
    return CALL_OK(f, rewind_session, RewindSession,
                   {.session_id = CHARS(session), .message_id = CHARS(message)})
        ->session;
}

Session *delete_ok(Fixture *f, const char *session)
{
    return CALL_OK(f, soft_delete_session, SoftDeleteSession, {.session_id = CHARS(session)})
        ->session;
}

Session *restore_ok(Fixture *f, const char *session)
{
    return CALL_OK(f, restore_session, RestoreSession, {.session_id = CHARS(session)})->session;
}

Session *archive_ok(Fixture *f, const char *session, bool archived)
{
    SessionField mask[] = {SESSION_FIELD_ARCHIVED};
    return CALL_OK(f, update_session, UpdateSession,
                   {.session_id = CHARS(session), .n_mask = 1, .mask = mask, .archived = archived})
        ->session;
}

bool purge_ok(Fixture *f, const char *session, bool keep_for_forks)
{
    return CALL_OK(f, purge_session, PurgeSession,
                   {.session_id = CHARS(session), .keep_for_forks = keep_for_forks})
        ->kept_for_forks;
}

void compact_ok(Fixture *f, const char *session, const char *before_message)
{
    Marker marker = {.before_message_id = CHARS(before_message), .summary = "summary"};
    CALL_OK(f, add_compaction_marker, AddCompactionMarker,
            {.session_id = CHARS(session), .marker = &marker});
}

void purges_settle(Fixture *f)
{
    for (;;) {
        StatsRequest request = {.base.descriptor = &tine__v1__stats_request__descriptor};
        StatsResponse *stats = NULL;
        CHECK_EQ(tine_stats(f->tine, NULL, &request, &stats), STATUS_OK);
        uint64_t pending = stats->purges_pending;
        protobuf_c_message_free_unpacked(&stats->base, NULL);
        if (pending == 0) return;
    }
}

uint64_t table_rows(Fixture *f, const char *table)
{
    StatsResponse *stats = CALL_OK(f, stats, Stats, {.base.n_unknown_fields = 0});
    for (size_t i = 0; i < stats->n_tables; i++) {
        if (strcmp(stats->tables[i]->name, table) == 0) return stats->tables[i]->rows;
    }
    CHECK_STR(table, "the name of a table");
    return 0;
}

const char *listed_slugs(Fixture *f, ListSessionsRequest request)
{
    static char joined[64 * 1024];
    size_t size = 0;
    joined[0] = '\0';
    do {
        ListSessionsResponse *page = CALL_OK(f, list_sessions, ListSessions, request);
        for (size_t i = 0; i < page->n_sessions; i++) {
            const char *slug = page->sessions[i]->slug;
            size_t room = sizeof(joined) - size;
            CHECK(strlen(slug) + 2 < room);
            size += (size_t)snprintf(joined + size, room, "%s%s", size ? " " : "", slug);
        }
        request.cursor = page->next_cursor;
    } while (*request.cursor);
    return joined;
}

char *text_of_size(size_t size)
{
    char *text = malloc(size + 1);
    CHECK(text);
    memset(text, 'a', size);
    text[size] = '\0';
    return text;
}

char *json_of_size(size_t size)
{
    char *text = text_of_size(size);
    text[0] = text[size - 1] = '"';
    return text;
}

void check_totals(const Totals *totals, int64_t input, int64_t output, int64_t cache_read,
                  int64_t cache_write, int64_t cost)
{
    CHECK(totals);
    CHECK_EQ(totals->input_tokens, input);
    CHECK_EQ(totals->output_tokens, output);
    CHECK_EQ(totals->cache_read_tokens, cache_read);
    CHECK_EQ(totals->cache_write_tokens, cache_write);
    CHECK_EQ(totals->cost_nano_usd, cost);
}

static Error purge_gate_before(void *context, KvOperation operation, KvTable table)
{
    (void)table;
    PurgeGate *gate = context;
    if (operation == KV_BEGIN_WRITE) {
        gate->deletes = 0;
        int shut = 0; // opens again at once
        if (__atomic_compare_exchange_n(&gate->commits_left, &shut, -1, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            return ERROR_IO;
        }
    }
    if (operation == KV_DELETE) gate->deletes++;
    if (operation == KV_COMMITTED) {
        if (gate->deletes > gate->deletes_max) gate->deletes_max = gate->deletes;
        if (__atomic_load_n(&gate->commits_left, __ATOMIC_ACQUIRE) > 0) {
            __atomic_sub_fetch(&gate->commits_left, 1, __ATOMIC_ACQ_REL);
        }
    }
    return ERROR_NONE;
}

KvSeam purge_gate_seam(PurgeGate *gate)
{
    *gate = (PurgeGate){.commits_left = -1};
    return (KvSeam){purge_gate_before, gate};
}

bool purge_and_stop_ok(Fixture *f, PurgeGate *gate, const char *session, bool keep_for_forks,
                       int slices)
{
    __atomic_store_n(&gate->commits_left, 1 + slices, __ATOMIC_RELEASE);
    bool kept = purge_ok(f, session, keep_for_forks);
    while (__atomic_load_n(&gate->commits_left, __ATOMIC_ACQUIRE) >= 0)
        sched_yield();
    return kept;
}
