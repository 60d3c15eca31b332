// tine show: shows one session, or one of its messages.

#include <string.h>

#include "cli.h"
#include "connect.h"
#include "find.h"
#include "format.h"
#include "json_print.h"
#include "message_print.h"

static void print_row(const Cli *cli, const char *name, const char *value)
{
    if (!*value) return;
    print(&cli->out, PRINT_BOLD "%-14s" PRINT_NORMAL " %.*s\n", name,
          cli->is_terminal ? PRINT_LINE_COLUMNS_MAX : -1, value);
}

static void print_totals(const Cli *cli, const char *name, const Totals *totals)
{
    char text[256];
    snprintf(text, sizeof(text), "%s USD, %lld in, %lld out, %lld cache read, %lld cache write",
             format_usd(totals->cost_nano_usd).text, (long long)totals->input_tokens,
             (long long)totals->output_tokens, (long long)totals->cache_read_tokens,
             (long long)totals->cache_write_tokens);
    print_row(cli, name, text);
}

static void print_time(const Cli *cli, const char *name, int64_t time_ms)
{
    if (time_ms == 0) return;
    char text[128];
    snprintf(text, sizeof(text), "%s (%s ago)", format_time(time_ms).text,
             format_age(time_ms, cli_now_ms()).text);
    print_row(cli, name, cli->is_terminal ? text : format_time(time_ms).text);
}

static void print_counts(const Cli *cli, const Session *session)
{
    char text[128];
    snprintf(text, sizeof(text), "%llu of %llu entries", (unsigned long long)session->message_count,
             (unsigned long long)session->entry_count);
    print_row(cli, "messages", text);
}

static void print_session(const Cli *cli, const Session *session)
{
    static const char *const KINDS[] = {"", "primary", "subagent"};
    static const char *const STATUS[] = {"", "idle", "busy", "retry"};
    char model[1024];
    snprintf(model, sizeof(model), "%s/%s", session->model->provider, session->model->name);
    print_row(cli, "id", session->id);
    print_row(cli, "slug", session->slug);
    print_row(cli, "title", session->title);
    print_row(cli, "project", session->project_dir);
    print_row(cli, "model", model);
    print_row(cli, "kind", (unsigned)session->kind < 3 ? KINDS[session->kind] : "");
    print_row(cli, "status", (unsigned)session->status < 4 ? STATUS[session->status] : "");
    print_row(cli, "parent", session->parent_id);
    print_row(cli, "forked at", session->fork_message_id);
    print_row(cli, "role", session->role_name);
    print_row(cli, "user", session->user_name);
    print_row(cli, "head", session->head_id);
    print_counts(cli, session);
    print_time(cli, "created", session->created_at);
    print_time(cli, "active", session->last_active_at);
    print_time(cli, "archived", session->archived_at);
    print_time(cli, "deleted", session->deleted_at);
    print_totals(cli, "own cost", session->own_totals);
    print_totals(cli, "rolled up", session->totals);
    print_row(cli, "began with", session->first_message_preview);
    print_row(cli, "last user", session->last_user_message);
    print_row(cli, "last agent", session->last_agent_message);
    print_row(cli, "metadata", session->metadata_json);
    if (!*session->system_prompt) return;
    print_row(cli, "system prompt", " ");
    print_block(&cli->out, slice_of(session->system_prompt), "    ", 0);
}

static int show_message(Cli *cli, const char *session_id, const char *text)
{
    MessageName name;
    int code = cli_find_message(cli, session_id, text, &name);
    if (code) return code;
    GetMessageRequest request = GET_MESSAGE_REQUEST__INIT;
    request.by_case = TINE__V1__GET_MESSAGE_REQUEST__BY_MESSAGE_ID;
    request.message_id = name.id;
    CLEANUP(message_freep) GetMessageResponse *reply = NULL;
    if (tine_get_message(cli->tine, &cli->call, &request, &reply)) {
        return cli_fail(cli, &cli->status);
    }
    if (cli->is_json) return cli_print_json(cli, &reply->message->base);
    cli_page(cli);
    message_print(cli, reply->message, &(MessageStyle){.is_full = true});
    return EXIT_OK;
}

static int run(Cli *cli, int argument_count, char **arguments)
{
    Tine *tine;
    SessionName name;
    int code = cli_connect(cli, &tine);
    if (!code) code = cli_find_session(cli, argument_count ? arguments[0] : "@last", &name);
    if (code) return code;
    if (argument_count == 2) return show_message(cli, name.id, arguments[1]);
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    request.session_id = name.id;
    CLEANUP(message_freep) GetSessionResponse *reply = NULL;
    if (tine_get_session(tine, &cli->call, &request, &reply)) return cli_fail(cli, &cli->status);
    if (cli->is_json) return cli_print_json(cli, &reply->session->base);
    cli_page(cli);
    print_session(cli, reply->session);
    return EXIT_OK;
}

const Command command_show = {
    .name = "show",
    .arguments = "[SESSION [MESSAGE]]",
    .summary = "prints the details of a session, or one of its messages in full",
    .details = "Default session: @last.",
    .examples = {"tine show plan", "tine show @last @head"},
    .argument_count_max = 2,
    .run = run,
};
