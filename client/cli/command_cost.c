// tine cost: shows what was spent. Each number is a sum of usage that is recorded once, with the
// message that caused it. A fork reads the messages of its ancestors but does not own them, so
// nothing is counted twice. With --calls the store sums the ledger of calls.

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "connect.h"
#include "find.h"
#include "format.h"
#include "options.h"
#include "sessions.h"
#include "table.h"

// The last two exist only for the ledger.
typedef enum CostBy { BY_SESSION, BY_PROJECT, BY_MODEL, BY_TREE, BY_DAY } CostBy;

typedef struct CostRow {
    char *key; // owned: a project or a model
    Totals own, rolled_up;
} CostRow;

typedef struct Cost {
    Cli *cli;
    CostBy by;
    CostRow *rows; // owned, sorted by key
    size_t count, capacity;
    Table *table;
    Totals own, rolled_up; // of all rows
} Cost;

static const Column COLUMNS[] = {
    {"OWN USD", COLUMN_RIGHT, 12, 0},
    {"ROLLED UP", COLUMN_RIGHT, 12, 48},
    {"INPUT", COLUMN_RIGHT, 8, 68},
    {"OUTPUT", COLUMN_RIGHT, 8, 68},
    {"CACHE READ", COLUMN_RIGHT, 11, 110},
    {"CACHE WRITE", COLUMN_RIGHT, 12, 110},
    {"OF", COLUMN_REST, 20, 0},
    {NULL, COLUMN_LEFT, 0, 0},
};

static void totals_add(Totals *sum, const Totals *more)
{
    sum->input_tokens += more->input_tokens;
    sum->output_tokens += more->output_tokens;
    sum->cache_read_tokens += more->cache_read_tokens;
    sum->cache_write_tokens += more->cache_write_tokens;
    sum->cost_nano_usd += more->cost_nano_usd;
}

static void print_count(Table *table, int64_t count)
{
    table_cell_two(table, format_count(count).text, format_number(count).text);
}

static void print_json_totals(const Printer *out, const char *name, const Totals *totals)
{
    print(out,
          "\"%s\":{\"input_tokens\":%lld,\"output_tokens\":%lld,\"cache_read_tokens\":%lld,"
          "\"cache_write_tokens\":%lld,\"cost_nano_usd\":%lld}",
          name, (long long)totals->input_tokens, (long long)totals->output_tokens,
          (long long)totals->cache_read_tokens, (long long)totals->cache_write_tokens,
          (long long)totals->cost_nano_usd);
}

static void print_row(Cost *cost, const char *id, const char *name, const Totals *own,
                      const Totals *rolled_up)
{
    if (cost->cli->is_json) {
        static const char *const NAMES[] = {"session_id", "project_dir", "model", "root_id", "day"};
        const Printer *out = &cost->cli->out;
        print(out, "{\"%s\":", NAMES[cost->by]);
        print_json_text(out, slice_of(cost->by == BY_SESSION ? id : name));
        print(out, ",");
        print_json_totals(out, "own", own);
        if (rolled_up) {
            print(out, ",");
            print_json_totals(out, "rolled_up", rolled_up);
        }
        print(out, "}\n");
        return;
    }
    Table *table = cost->table;
    table_cell(table, format_usd(own->cost_nano_usd).text);
    table_cell(table, rolled_up ? format_usd(rolled_up->cost_nano_usd).text : "");
    print_count(table, own->input_tokens);
    print_count(table, own->output_tokens);
    print_count(table, own->cache_read_tokens);
    print_count(table, own->cache_write_tokens);
    char both[1024];
    snprintf(both, sizeof(both), "%s%s%s", id, *id && *name ? "  " : "", name);
    table_cell_two(table, both, *id ? id : name);
}

// Returns the row of this key; adds one if there is none. NULL when out of memory.
static CostRow *row_of(Cost *cost, const char *key)
{
    size_t low = 0, high = cost->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(cost->rows[middle].key, key);
        if (order == 0) return &cost->rows[middle];
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (cost->count == cost->capacity) {
        size_t capacity = cost->capacity ? cost->capacity * 2 : 64;
        CostRow *rows = realloc(cost->rows, capacity * sizeof(CostRow));
        if (!rows) return NULL;
        cost->rows = rows;
        cost->capacity = capacity;
    }
    char *copy = strdup(key);
    if (!copy) return NULL;
    memmove(&cost->rows[low + 1], &cost->rows[low], (cost->count - low) * sizeof(CostRow));
    cost->rows[low] = (CostRow){copy, TOTALS__INIT, TOTALS__INIT};
    cost->count++;
    return &cost->rows[low];
}

static int add_message(Cost *cost, const Session *session, const Message *message)
{
    const Usage *usage = message->usage;
    if (!usage) return EXIT_OK;
    const ModelRef *model = message->model ? message->model : session->model;
    char key[1024];
    snprintf(key, sizeof(key), "%s/%s", model->provider, model->name);
    CostRow *row = row_of(cost, key);
    if (!row) return cli_say(EXIT_FAILED, "out of memory");
    Totals more = TOTALS__INIT;
    more.input_tokens = usage->input_tokens;
    more.output_tokens = usage->output_tokens;
    more.cache_read_tokens = usage->cache_read_tokens;
    more.cache_write_tokens = usage->cache_write_tokens;
    more.cost_nano_usd = usage->cost_nano_usd;
    totals_add(&row->own, &more);
    return EXIT_OK;
}

// A session has the model that it uses now. Only its messages say which model caused which cost.
static int add_messages(Cost *cost, const Session *session)
{
    if (session->entry_count == 0) return EXIT_OK;
    ListMessagesRequest request = LIST_MESSAGES_REQUEST__INIT;
    request.session_id = session->id;
    CLEANUP(message_freep) ListMessagesResponse *reply = NULL;
    do {
        ListMessagesResponse *next = NULL;
        if (tine_list_messages(cost->cli->tine, &cost->cli->call, &request, &next)) {
            return cli_fail(cost->cli, &cost->cli->status);
        }
        message_freep(&reply);
        reply = next;
        for (size_t i = 0; i < reply->n_messages; i++) {
            int code = add_message(cost, session, reply->messages[i]);
            if (code) return code;
        }
        request.cursor = reply->next_cursor;
    } while (*reply->next_cursor);
    return EXIT_OK;
}

static int on_session(void *context, const Session *session)
{
    Cost *cost = context;
    totals_add(&cost->own, session->own_totals);
    // Only sessions without a parent: their rolled-up totals include those of their descendants.
    if (!*session->parent_id) totals_add(&cost->rolled_up, session->totals);
    if (cost->by == BY_SESSION) {
        print_row(cost, session->id, *session->slug ? session->slug : session->title,
                  session->own_totals, session->totals);
        return EXIT_OK;
    }
    if (cost->by == BY_MODEL) return add_messages(cost, session);
    CostRow *row = row_of(cost, session->project_dir);
    if (!row) return cli_say(EXIT_FAILED, "out of memory");
    totals_add(&row->own, session->own_totals);
    if (!*session->parent_id) totals_add(&row->rolled_up, session->totals);
    return EXIT_OK;
}

static int sum_one(Cost *cost, const char *text)
{
    SessionName name;
    int code = cli_find_session(cost->cli, text, &name);
    if (code) return code;
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    request.session_id = name.id;
    CLEANUP(message_freep) GetSessionResponse *reply = NULL;
    if (tine_get_session(cost->cli->tine, &cost->cli->call, &request, &reply)) {
        return cli_fail(cost->cli, &cost->cli->status);
    }
    return on_session(cost, reply->session);
}

static int sum_all(Cost *cost)
{
    char directory[PATH_MAX];
    ListSessionsRequest request = LIST_SESSIONS_REQUEST__INIT;
    request.deleted = DELETED_FILTER_INCLUDE; // deleted sessions were paid for, too
    const char *project = option_text(cost->cli, "project");
    if (project) request.project_dir = project_path(project, directory);
    return sessions_each(cost->cli, &request, on_session, cost);
}

static void group_text(CostBy by, const CostSum *sum, char *out, size_t out_bytes_max)
{
    time_t day = (time_t)(sum->day_at / 1000);
    struct tm parts;
    switch (by) {
    case BY_PROJECT: snprintf(out, out_bytes_max, "%s", sum->project_dir); break;
    case BY_MODEL:
        snprintf(out, out_bytes_max, "%s/%s", sum->model->provider, sum->model->name);
        break;
    case BY_DAY:
        if (!gmtime_r(&day, &parts) || !strftime(out, out_bytes_max, "%Y-%m-%d", &parts)) *out = 0;
        break;
    case BY_SESSION:
    case BY_TREE:
    default: snprintf(out, out_bytes_max, "%s", sum->session_id); break;
    }
}

// Adds up the rows of a group from all pages.
static int add_sums(Cost *cost, const SummarizeCostResponse *page)
{
    for (size_t i = 0; i < page->n_rows; i++) {
        char text[PATH_MAX + 1];
        group_text(cost->by, page->rows[i], text, sizeof(text));
        CostRow *row = row_of(cost, text);
        if (!row) return cli_say(EXIT_FAILED, "out of memory");
        totals_add(&row->own, page->rows[i]->totals);
        totals_add(&cost->own, page->rows[i]->totals);
    }
    return EXIT_OK;
}

static int sum_calls(Cost *cost, const char *session)
{
    static const CostGroup GROUPS[] = {COST_GROUP_SESSION, COST_GROUP_PROJECT, COST_GROUP_MODEL,
                                       COST_GROUP_TREE, COST_GROUP_DAY};
    Cli *cli = cost->cli;
    char directory[PATH_MAX];
    SessionName name;
    SummarizeCostRequest request = SUMMARIZE_COST_REQUEST__INIT;
    request.by = GROUPS[cost->by];
    if (session) {
        int code = cli_find_session(cli, session, &name);
        if (code) return code;
        request.session_id = name.id;
        request.with_descendants = true;
    }
    const char *project = option_text(cli, "project");
    if (project) request.project_dir = project_path(project, directory);
    CLEANUP(message_freep) SummarizeCostResponse *reply = NULL;
    do {
        SummarizeCostResponse *next = NULL;
        if (tine_summarize_cost(cli->tine, &cli->call, &request, &next)) {
            return cli_fail(cli, &cli->status);
        }
        message_freep(&reply);
        reply = next;
        int code = add_sums(cost, reply);
        if (code) return code;
        request.cursor = reply->next_cursor;
    } while (*request.cursor);
    return EXIT_OK;
}

static void print_calls(Cost *cost)
{
    bool is_id = cost->by == BY_SESSION;
    for (size_t i = 0; i < cost->count; i++) {
        const CostRow *row = &cost->rows[i];
        print_row(cost, is_id ? row->key : "", is_id ? "" : row->key, &row->own, NULL);
    }
    if (cost->cli->is_terminal && !cost->cli->is_json) {
        print_row(cost, "", "all of these", &cost->own, NULL);
    }
}

static void print_rows(Cost *cost)
{
    for (size_t i = 0; i < cost->count; i++) {
        const CostRow *row = &cost->rows[i];
        print_row(cost, "", row->key, &row->own, cost->by == BY_MODEL ? NULL : &row->rolled_up);
    }
    if (cost->cli->is_terminal && !cost->cli->is_json) {
        print_row(cost, "", "all of these", &cost->own,
                  cost->by == BY_MODEL ? NULL : &cost->rolled_up);
    }
}

static int run(Cli *cli, int argument_count, char **arguments)
{
    static const char *const BY[] = {"session", "project", "model", "tree", "day", NULL};
    int by = BY_SESSION;
    bool is_of_calls = option_is_given(cli, "calls");
    Tine *tine;
    int code = option_choice(cli, "by", BY, &by);
    if (!code && argument_count && by == BY_PROJECT) {
        code = cli_usage(cli, "use a session or --by project, not both");
    }
    if (!code && !is_of_calls && by > BY_MODEL) {
        code = cli_usage(cli, "--by %s needs --calls", BY[by]);
    }
    if (!code) code = cli_connect(cli, &tine);
    if (code) return code;
    Cost cost = {.cli = cli, .by = (CostBy)by, .own = TOTALS__INIT, .rolled_up = TOTALS__INIT};
    cli_page(cli);
    cost.table = cli->is_json ? NULL : table_open(cli, COLUMNS);
    if (is_of_calls) {
        code = sum_calls(&cost, argument_count ? arguments[0] : NULL);
        if (!code) print_calls(&cost);
    } else {
        code = argument_count ? sum_one(&cost, arguments[0]) : sum_all(&cost);
        if (!code) print_rows(&cost);
    }
    table_closep(&cost.table);
    for (size_t i = 0; i < cost.count; i++)
        free(cost.rows[i].key);
    free(cost.rows);
    return code;
}

static const Option OPTIONS[] = {
    {"by", 'b', "WHAT", "session, project, model; with --calls also tree, day (default: session)"},
    {"calls", 0, NULL, "sum the recorded calls instead of the messages"},
    {"project", 'p', "DIR", "only this project"},
    {NULL, 0, NULL, NULL},
};

const Command command_cost = {
    .name = "cost",
    .arguments = "[SESSION]",
    .summary = "shows what was spent, by session, project or model",
    .details = "Own is the sum over the messages that a session owns; a fork does not own what\n"
               "it inherits. Rolled up is what PropagateTotals, --propagate or\n"
               "UpdateSessionTotals added to a session, for itself and for its descendants;\n"
               "for a project it is the sum over sessions without a parent. Deleted sessions\n"
               "and abandoned branches count, because they were paid for. --json prints one\n"
               "line each.\n"
               "--calls sums the ledger of requests to providers of models instead; the sum of\n"
               "a session includes its descendants.",
    .options = OPTIONS,
    .examples = {"tine cost @last", "tine cost --by model --project .",
                 "tine cost --calls --by day",
                 "tine cost --by project --json | jq .own.cost_nano_usd"},
    .argument_count_max = 1,
    .run = run,
};
