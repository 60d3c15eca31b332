// tine ls: lists sessions. They are read and printed page by page, so that the first ones of a
// hundred thousand appear at once.

#include <limits.h>
#include <string.h>

#include "cli.h"
#include "connect.h"
#include "find.h"
#include "format.h"
#include "json_print.h"
#include "options.h"
#include "safe_mode.h"
#include "sessions.h"
#include "table.h"

enum { PAGE_FIRST = 50, PAGE_NEXT = 1000 };

// A narrow terminal shows only ID and name.
static const Column COLUMNS[] = {
    {"ID", COLUMN_LEFT, 26, 0},      {"AGE", COLUMN_RIGHT, 4, 42},  {"MSGS", COLUMN_RIGHT, 6, 50},
    {"COST", COLUMN_RIGHT, 8, 60},   {"STATE", COLUMN_LEFT, 8, 90}, {"NAME", COLUMN_REST, 8, 0},
    {"PROJECT", COLUMN_REST, 8, 70}, {NULL, COLUMN_LEFT, 0, 0},
};

static const char *state_of(const Session *session)
{
    if (session->deleted_at) return "deleted";
    if (session->archived_at) return "archived";
    if (session->status == SESSION_STATUS_BUSY) return "busy";
    if (session->status == SESSION_STATUS_RETRY) return "retry";
    return "";
}

static const char *name_of(const Session *session)
{
    if (*session->slug) return session->slug;
    return *session->title ? session->title : session->first_message_preview;
}

// The last two components of a path are the most useful ones.
static const char *end_of(const char *path)
{
    const char *end = path + strlen(path);
    for (int slashes = 0; end > path; end--) {
        if (*end == '/' && ++slashes == 2) return end + 1;
    }
    return path;
}

static void print_row(Table *table, const Session *session, int64_t now_ms)
{
    table_cell(table, session->id);
    table_cell_two(table, format_age(session->last_active_at, now_ms).text,
                   format_time(session->last_active_at).text);
    table_cell(table, format_number((int64_t)session->message_count).text);
    table_cell_two(table, format_money(session->own_totals->cost_nano_usd).text,
                   format_usd(session->own_totals->cost_nano_usd).text);
    table_cell(table, state_of(session));
    table_cell(table, name_of(session));
    table_cell_two(table, end_of(session->project_dir), session->project_dir);
}

static int fill(const Cli *cli, ListSessionsRequest *request, char *directory)
{
    static const char *const ORDERS[] = {"active", "created", NULL};
    static const char *const KINDS[] = {"any", "primary", "subagent", NULL};
    static const char *const STATES[] = {"any", "idle", "busy", "retry", NULL};
    int order = 0, kind = 0, state = 0;
    int code = option_choice(cli, "order", ORDERS, &order);
    if (!code) code = option_choice(cli, "kind", KINDS, &kind);
    if (!code) code = option_choice(cli, "status", STATES, &state);
    if (code) return code;
    request->order = order == 0 ? SESSION_ORDER_LAST_ACTIVE : SESSION_ORDER_CREATED;
    request->kind = (SessionKind)kind;
    request->status = (SessionStatus)state;
    if (option_is_given(cli, "all")) request->deleted = DELETED_FILTER_INCLUDE;
    if (option_is_given(cli, "deleted")) request->deleted = DELETED_FILTER_ONLY;
    const char *project = option_text(cli, "project"), *query = option_text(cli, "query");
    if (project) request->project_dir = project_path(project, directory);
    if (query) request->query = (char *)(uintptr_t)query;
    return EXIT_OK;
}

static int list(Cli *cli, ListSessionsRequest *request, Table *table, int64_t count)
{
    CLEANUP(message_freep) ListSessionsResponse *reply = NULL;
    int64_t now_ms = cli_now_ms();
    size_t seen = 0;
    request->limit = PAGE_FIRST;
    for (;;) {
        if (count < request->limit) request->limit = (uint32_t)count;
        ListSessionsResponse *next = NULL;
        if (tine_list_sessions(cli->tine, &cli->call, request, &next)) {
            return cli_fail(cli, &cli->status);
        }
        message_freep(&reply);
        reply = next;
        for (size_t i = 0; i < reply->n_sessions; i++) {
            if (cli->is_json) {
                (void)cli_print_json_line(cli, &reply->sessions[i]->base);
            } else {
                print_row(table, reply->sessions[i], now_ms);
            }
        }
        table_flush(table);
        print_flush(&cli->out);
        count -= (int64_t)reply->n_sessions;
        seen += reply->n_sessions;
        if (count <= 0 || !*reply->next_cursor) break;
        request->cursor = reply->next_cursor;
        request->limit = PAGE_NEXT;
    }
    if (seen == 0 && cli->is_terminal && !cli->is_json) {
        cli_note("No sessions. Create one with: tine new\n");
    }
    return safe_mode_warn(cli);
}

static int run(Cli *cli, int argument_count, char **arguments)
{
    (void)argument_count;
    (void)arguments;
    ListSessionsRequest request = LIST_SESSIONS_REQUEST__INIT;
    SessionName parent;
    char directory[PATH_MAX];
    Tine *tine;
    int64_t count = INT64_MAX;
    int code = option_number(cli, "limit", 1, INT64_MAX, &count);
    if (!code) code = fill(cli, &request, directory);
    if (!code) code = cli_connect(cli, &tine);
    if (!code && option_text(cli, "parent")) {
        code = cli_find_session(cli, option_text(cli, "parent"), &parent);
        request.parent_id = parent.id;
    }
    if (code) return code;
    cli_page(cli);
    CLEANUP(table_closep) Table *table = cli->is_json ? NULL : table_open(cli, COLUMNS);
    return list(cli, &request, table, count);
}

static const Option OPTIONS[] = {
    {"limit", 'n', "N", "at most N sessions"},
    {"project", 'p', "DIR", "only this project"},
    {"query", 'q', "TEXT", "only with TEXT in slug, title, project or first message"},
    {"kind", 0, "KIND", "primary or subagent"},
    {"status", 0, "STATUS", "idle, busy or retry"},
    {"parent", 0, "SESSION", "only forks and subagents of this session"},
    {"order", 0, "ORDER", "active (most recent first) or created (default: active)"},
    {"all", 'a', NULL, "deleted sessions, too"},
    {"deleted", 0, NULL, "only deleted sessions"},
    {NULL, 0, NULL, NULL},
};

const Command command_ls = {
    .name = "ls",
    .arguments = "",
    .summary = "lists sessions, most recently active first",
    .details = "In a pipe each session is a line without headings: ID, time, messages, cost in\n"
               "USD, state, name and project, separated by tabs. --json prints one line each,\n"
               "with all fields.",
    .options = OPTIONS,
    .examples = {"tine ls -n 10", "tine ls --project . --json | jq -r .slug"},
    .run = run,
};
