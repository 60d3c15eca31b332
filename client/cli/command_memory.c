// tine memory: lists, adds and removes the memories of a session.

#include <string.h>

#include "cli.h"
#include "connect.h"
#include "find.h"
#include "format.h"
#include "input.h"
#include "json_print.h"
#include "options.h"
#include "table.h"

static int list(Cli *cli, char *session_id)
{
    static const Column COLUMNS[] = {
        {"ID", COLUMN_LEFT, 26, 0},
        {"AGE", COLUMN_RIGHT, 4, 54},
        {"CONTENT", COLUMN_REST, 20, 0},
        {NULL, COLUMN_LEFT, 0, 0},
    };
    ListSessionMemoriesRequest request = LIST_SESSION_MEMORIES_REQUEST__INIT;
    request.session_id = session_id;
    cli_page(cli);
    CLEANUP(table_closep) Table *table = cli->is_json ? NULL : table_open(cli, COLUMNS);
    CLEANUP(message_freep) ListSessionMemoriesResponse *reply = NULL;
    do {
        ListSessionMemoriesResponse *next = NULL;
        if (tine_list_session_memories(cli->tine, &cli->call, &request, &next)) {
            return cli_fail(cli, &cli->status);
        }
        message_freep(&reply);
        reply = next;
        for (size_t i = 0; i < reply->n_memories; i++) {
            const Memory *memory = reply->memories[i];
            if (cli->is_json) (void)cli_print_json_line(cli, &memory->base);
            table_cell(table, memory->id);
            table_cell_two(table, format_age(memory->created_at, cli_now_ms()).text,
                           format_time(memory->created_at).text);
            table_cell(table, memory->content);
        }
        table_flush(table);
        request.cursor = reply->next_cursor;
    } while (*reply->next_cursor);
    return EXIT_OK;
}

static int add(Cli *cli, char *session_id, const char *text)
{
    CLEANUP(text_freep) char *content = NULL;
    int code = input_read(cli, text, &content);
    if (code) return code;
    const char *title = option_text(cli, "title"), *source = option_text(cli, "source");
    NewMemory memory = NEW_MEMORY__INIT;
    memory.content = content;
    if (title) memory.title = (char *)(uintptr_t)title;
    if (source) memory.source = (char *)(uintptr_t)source;
    RememberSessionMemoryRequest request = REMEMBER_SESSION_MEMORY_REQUEST__INIT;
    request.session_id = session_id;
    request.memory = &memory;
    CLEANUP(message_freep) RememberSessionMemoryResponse *reply = NULL;
    if (tine_remember_session_memory(cli->tine, &cli->call, &request, &reply)) {
        return cli_fail(cli, &cli->status);
    }
    if (cli->is_json) return cli_print_json(cli, &reply->memory->base);
    print(&cli->out, "%s\n", reply->memory->id);
    return EXIT_OK;
}

static int forget(Cli *cli, char *session_id, char *memory_id)
{
    ForgetSessionMemoryRequest request = FORGET_SESSION_MEMORY_REQUEST__INIT;
    request.session_id = session_id;
    request.memory_id = memory_id;
    CLEANUP(message_freep) ForgetSessionMemoryResponse *reply = NULL;
    if (tine_forget_session_memory(cli->tine, &cli->call, &request, &reply)) {
        return cli_fail(cli, &cli->status);
    }
    return cli->is_json ? cli_print_json(cli, &reply->memory->base) : EXIT_OK;
}

static int run(Cli *cli, int argument_count, char **arguments)
{
    const char *what = arguments[0];
    bool is_list = strcmp(what, "list") == 0, is_add = strcmp(what, "add") == 0;
    if (!is_list && !is_add && strcmp(what, "rm") != 0) {
        return cli_usage(cli, "'%s' is not one of: list, add, rm", what);
    }
    if (is_list && argument_count > 2) return cli_usage(cli, "list takes only a session");
    if (!is_list && !is_add && argument_count != 3) {
        return cli_usage(cli, "rm needs a session and the ID of a memory");
    }
    Tine *tine;
    SessionName session;
    int code = cli_connect(cli, &tine);
    if (!code) code = cli_find_session(cli, arguments[1], &session);
    if (code) return code;
    if (is_list) return list(cli, session.id);
    return is_add ? add(cli, session.id, arguments[2]) : forget(cli, session.id, arguments[2]);
}

static const Option OPTIONS[] = {
    {"title", 't', "TEXT", "for add: the subject"},
    {"source", 0, "TEXT", "for add: the origin"},
    {NULL, 0, NULL, NULL},
};

const Command command_memory = {
    .name = "memory",
    .arguments = "list|add|rm SESSION [TEXT|ID]",
    .summary = "lists, adds and removes memories of a session",
    .details = "Without TEXT, add reads standard input. list --json prints one line each.",
    .options = OPTIONS,
    .examples = {"tine memory add plan 'The tests need a tmpfs.'", "tine memory list plan",
                 "tine memory rm plan 01JD0E3R9M5SVQ6AVTCDM1SB4K"},
    .argument_count_min = 2,
    .argument_count_max = 3,
    .run = run,
};
