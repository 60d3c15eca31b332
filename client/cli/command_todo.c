// tine todo: shows and replaces the task list of a session.

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "cli.h"
#include "connect.h"
#include "find.h"
#include "input.h"
#include "json_print.h"
#include "options.h"

// How an item is written: "[x] it is done".
static const struct {
    const char *mark, *status;
} MARKS[] = {
    {"[ ]", "pending"},
    {"[>]", "in_progress"},
    {"[x]", "completed"},
    {"[-]", "cancelled"},
};

enum { MARK_COUNT = sizeof(MARKS) / sizeof(*MARKS), MARK_BYTES = 3 };

static int print_todos(Cli *cli, const Todos *todos)
{
    if (cli->is_json) return cli_print_json(cli, &todos->base);
    for (size_t i = 0; i < todos->n_items; i++) {
        const TodoItem *item = todos->items[i];
        const char *mark = NULL;
        for (size_t j = 0; j < MARK_COUNT; j++) {
            if (strcmp(item->status, MARKS[j].status) == 0) mark = MARKS[j].mark;
        }
        if (mark) {
            print(&cli->out, "%s %s\n", mark, item->content);
        } else {
            print(&cli->out, "[%s] %s\n", item->status, item->content);
        }
    }
    return EXIT_OK;
}

static int list(Cli *cli, char *session_id)
{
    GetSessionTodosRequest request = GET_SESSION_TODOS_REQUEST__INIT;
    request.session_id = session_id;
    CLEANUP(message_freep) GetSessionTodosResponse *reply = NULL;
    if (tine_get_session_todos(cli->tine, &cli->call, &request, &reply)) {
        return cli_fail(cli, &cli->status);
    }
    cli_page(cli);
    return print_todos(cli, reply->todos);
}

static void read_item(char *line, TodoItem *out)
{
    *out = (TodoItem)TODO_ITEM__INIT;
    out->status = (char *)(uintptr_t)MARKS[0].status;
    for (size_t i = 0; i < MARK_COUNT; i++) {
        if (strncmp(line, MARKS[i].mark, MARK_BYTES) != 0) continue;
        out->status = (char *)(uintptr_t)MARKS[i].status;
        line += MARK_BYTES;
        break;
    }
    out->content = line + strspn(line, " ");
}

static int set(Cli *cli, char *session_id, char **lines, size_t count)
{
    TodoItem *items = calloc(count + 1, sizeof(TodoItem));
    TodoItem **pointers = calloc(count + 1, sizeof(TodoItem *));
    ReplaceSessionTodosRequest request = REPLACE_SESSION_TODOS_REQUEST__INIT;
    ReplaceSessionTodosResponse *reply = NULL;
    request.session_id = session_id;
    request.items = pointers;
    int code = STATUS_RESOURCE_EXHAUSTED;
    if (items && pointers) {
        for (size_t i = 0; i < count; i++) {
            if (!*lines[i]) continue;
            read_item(lines[i], &items[i]);
            pointers[request.n_items++] = &items[i];
        }
        code = tine_replace_session_todos(cli->tine, &cli->call, &request, &reply);
    }
    free(items);
    free(pointers);
    if (code) return cli_fail(cli, &cli->status);
    if (cli->is_json) code = cli_print_json(cli, &reply->todos->base);
    message_freep(&reply);
    return code;
}

// Reads one item a line from standard input.
static int set_from_input(Cli *cli, char *session_id)
{
    CLEANUP(text_freep) char *text = NULL;
    int code = input_read(cli, NULL, &text);
    if (code) return code;
    char *lines[TODO_COUNT_MAX + 1], *next = text;
    size_t count = 0;
    while (next && count <= TODO_COUNT_MAX)
        lines[count++] = strsep(&next, "\n");
    return set(cli, session_id, lines, count); // the server refuses one more than the limit
}

static int run(Cli *cli, int argument_count, char **arguments)
{
    bool is_list = strcmp(arguments[0], "list") == 0;
    if (!is_list && strcmp(arguments[0], "set") != 0) {
        return cli_usage(cli, "'%s' is not one of: list, set", arguments[0]);
    }
    if (is_list && argument_count > 2) return cli_usage(cli, "list takes only a session");
    Tine *tine;
    SessionName session;
    int code = cli_connect(cli, &tine);
    if (!code) code = cli_find_session(cli, arguments[1], &session);
    if (code) return code;
    if (is_list) return list(cli, session.id);
    if (argument_count == 2 && !option_is_given(cli, "clear")) {
        return set_from_input(cli, session.id);
    }
    return set(cli, session.id, arguments + 2, (size_t)argument_count - 2);
}

static const Option OPTIONS[] = {
    {"clear", 0, NULL, "for set: remove all items"},
    {NULL, 0, NULL, NULL},
};

const Command command_todo = {
    .name = "todo",
    .arguments = "list|set SESSION [ITEM…]",
    .summary = "prints or replaces the task list of a session",
    .details = "An item is a text behind [ ] (pending, also without a mark), [>] (in\n"
               "progress), [x] (completed) or [-] (cancelled). Without items, set reads one a\n"
               "line from standard input, in the format of `tine todo list`.",
    .options = OPTIONS,
    .examples = {"tine todo set plan '[x] measure' '[>] build' 'show it'", "tine todo list plan",
                 "tine todo list plan | sed 's/^\\[>\\]/[x]/' | tine todo set plan"},
    .argument_count_min = 2,
    .argument_count_max = COMMAND_ANY_COUNT,
    .run = run,
};
