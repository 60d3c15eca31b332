// tine export: writes sessions to a file or to standard output.

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "connect.h"
#include "export.h"
#include "find.h"
#include "importers/pi/pi_export.h"
#include "options.h"
#include "progress.h"
#include "safe_mode.h"
#include "session_set.h"

static size_t damaged_count; // sessions that could not be read to their end

// "pi SESSION" asks for a file of pi; "pi" alone does too, unless a session has that slug.
static int wants_pi(Cli *cli, int argument_count, char **arguments, bool *out)
{
    *out = argument_count > 0 && strcmp(arguments[0], "pi") == 0;
    if (argument_count != 1 || !*out) return EXIT_OK;
    ResolveSessionRequest request = RESOLVE_SESSION_REQUEST__INIT;
    CLEANUP(message_freep) ResolveSessionResponse *reply = NULL;
    request.by_case = TINE__V1__RESOLVE_SESSION_REQUEST__BY_SLUG;
    request.slug = arguments[0];
    int status = tine_resolve_session(cli->tine, &cli->call, &request, &reply);
    if (!status) *out = reply->n_sessions == 0;
    return status ? cli_fail(cli, &cli->status) : EXIT_OK;
}

static int choose(Cli *cli, int argument_count, char **arguments, SessionSet *set)
{
    const char *project = option_text(cli, "project");
    bool wants_all = option_is_given(cli, "all");
    if ((argument_count > 0) + (project != NULL) + wants_all != 1) {
        return cli_usage(cli, "name what to export: SESSION…, --project DIR or --all");
    }
    int code = EXIT_OK;
    for (int i = 0; i < argument_count && !code; i++) {
        SessionName name;
        code = cli_find_session(cli, arguments[i], &name);
        if (!code) code = session_set_add(set, name.id);
    }
    if (argument_count == 0) {
        ListSessionsRequest filter = LIST_SESSIONS_REQUEST__INIT;
        if (project) filter.project_dir = (char *)(uintptr_t)project;
        code = session_set_list(cli, set, filter);
    }
    if (!code && option_is_given(cli, "children")) code = session_set_add_children(cli, set);
    if (!code && !option_is_given(cli, "markdown")) code = session_set_add_ancestors(cli, set);
    if (!code) session_set_sort(set);
    if (!code && set->count == 0) return cli_say(EXIT_NOT_FOUND, "there are no such sessions");
    return code;
}

typedef int (*WriteAll)(Cli *cli, const SessionSet *set, FILE *out);

// Writes each session. One that cannot be read is written as far as possible, and counted in
// `damaged_count`; the others follow all the same.
static int write_each(Cli *cli, const SessionSet *set, FILE *out,
                      int (*write)(Cli *cli, FILE *out, const char *id))
{
    int code = EXIT_OK;
    for (size_t i = 0; i < set->count && !code; i++) {
        cli->status.code = STATUS_OK;
        code = write(cli, out, set->names[i].id);
        if (!code || cli->status.code != STATUS_DATA_LOSS) continue;
        code = cli_say(EXIT_OK, "session %s is not whole in the export", set->names[i].id);
        damaged_count++;
    }
    return code;
}

static int write_all(Cli *cli, const SessionSet *set, FILE *out)
{
    fprintf(out, "{\"tine_export\":%d}\n", EXPORT_FORMAT);
    return write_each(cli, set, out, export_session);
}

static int write_markdown(Cli *cli, const SessionSet *set, FILE *out)
{
    return write_each(cli, set, out, export_session_markdown);
}

static int write_pi(Cli *cli, const SessionSet *set, FILE *out)
{
    atomic_uint_fast64_t bytes_done = 0;
    // If the file goes to the terminal, progress would be printed into it.
    bool is_shown = cli->is_terminal && !option_text(cli, "output");
    Progress *progress = is_shown ? NULL : progress_begin_counted("exported", &bytes_done, 0);
    int status = pi_export(cli->tine, &cli->call, set->names[0].id, out, &bytes_done);
    progress_end(progress);
    return status ? cli_fail(cli, &cli->status) : EXIT_OK;
}

// Shows on the terminal what `write` writes. It is text of others, which must not act there.
static int show(Cli *cli, const SessionSet *set, WriteAll write)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) return cli_say(EXIT_FAILED, "out of memory");
    cli_page(cli);
    int code = write(cli, set, out);
    if (fclose(out) != 0 && !code) code = cli_say(EXIT_FAILED, "out of memory");
    if (!code) print_block(&cli->out, slice(text, size), "", 0);
    free(text);
    return code;
}

static int write_file(Cli *cli, const SessionSet *set, WriteAll write, const char *path)
{
    FILE *file = fopen(path, "wxe");
    if (!file) return cli_say(EXIT_FAILED, "cannot create %s: %s", path, strerror(errno));
    int code = write(cli, set, file);
    if (fclose(file) != 0 && !code) {
        code = cli_say(EXIT_FAILED, "cannot write %s: %s", path, strerror(errno));
    }
    if (code) {
        (void)remove(path);
    } else {
        const char *noun = set->count == 1 ? "session" : "sessions";
        cli_note("%zu %s in %s\n", set->count, noun, path);
    }
    return code;
}

// A file of pi has one session.
static int choose_pi(Cli *cli, int argument_count, char **arguments, SessionSet *set)
{
    SessionName name;
    if (argument_count != 2 || option_text(cli, "project") || option_is_given(cli, "all") ||
        option_is_given(cli, "children") || option_is_given(cli, "markdown")) {
        return cli_usage(cli, "name one session: tine export pi SESSION");
    }
    int code = cli_find_session(cli, arguments[1], &name);
    return code ? code : session_set_add(set, name.id);
}

static int run(Cli *cli, int argument_count, char **arguments)
{
    Tine *tine;
    int code = cli_connect(cli, &tine);
    if (code) return code;
    CLEANUP(session_set_free) SessionSet set = {0};
    bool is_pi = false;
    code = wants_pi(cli, argument_count, arguments, &is_pi);
    if (code) return code;
    WriteAll write = is_pi                              ? write_pi
                     : option_is_given(cli, "markdown") ? write_markdown
                                                        : write_all;
    code = is_pi ? choose_pi(cli, argument_count, arguments, &set)
                 : choose(cli, argument_count, arguments, &set);
    if (code) return code;
    const char *path = option_text(cli, "output");
    if (path) {
        code = write_file(cli, &set, write, path);
    } else if (cli->is_terminal && write != write_all) {
        code = show(cli, &set, write);
    } else { // our own lines are safe: all text in them is in JSON strings (text/json_write.h)
        code = write(cli, &set, cli->out.file);
    }
    if (!code && argument_count == 0) code = safe_mode_warn(cli);
    return !code && damaged_count > 0 ? EXIT_FAILED : code;
}

static const Option OPTIONS[] = {
    {"project", 'p', "DIR", "all sessions of this project directory"},
    {"all", 'a', NULL, "all sessions"},
    {"children", 'c', NULL, "also their forks and subagents"},
    {"markdown", 'm', NULL, "the history as Markdown, for people; cannot be imported"},
    {"output", 'o', "FILE", "write to a new file instead of standard output"},
    {NULL, 0, NULL, NULL},
};

const Command command_export = {
    .name = "export",
    .arguments = "[pi] [SESSION…]",
    .summary = "writes sessions as JSON lines for import, as Markdown, or for pi",
    .details = "JSON lines have everything of a session: all branches, deleted entries,\n"
               "memories, todos, and the ancestors of a fork. With pi, one session is written\n"
               "as a session file of the pi coding agent. A session that cannot be read is\n"
               "written as far as possible; the others follow, and the exit code is 1.",
    .options = OPTIONS,
    .examples = {"tine export @last > session.jsonl", "tine export --project ~/work -o work.jsonl",
                 "tine export plan --markdown > plan.md", "tine export pi plan > plan.jsonl"},
    .argument_count_max = COMMAND_ANY_COUNT,
    .run = run,
};
