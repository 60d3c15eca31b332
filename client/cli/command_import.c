// tine import: takes back what export wrote.

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "import.h"
#include "input.h"
#include "json.h"
#include "pi/pi_import.h"

static int import_file(Import *import, FILE *file, const char *name)
{
    CLEANUP(text_freep) char *line = NULL;
    size_t capacity = 0;
    ssize_t size;
    int code = EXIT_OK;
    import->line = 0;
    while (!code && (size = getline(&line, &capacity, file)) >= 0) {
        import->line++;
        if ((size_t)size > JSON_TEXT_BYTES_MAX) return import_fail(import, "it is too long");
        code = import_line(import, slice(line, (size_t)size));
    }
    if (!code && ferror(file)) {
        code = cli_say(EXIT_FAILED, "cannot read %s: %s", name, strerror(errno));
    }
    if (!code) code = import_end(import);
    import->has_header = false;
    return code;
}

typedef int (*ImportFile)(Import *import, FILE *file, const char *name);

static int import_path(Import *import, ImportFile import_one, const char *path)
{
    if (strcmp(path, "-") == 0) return import_one(import, stdin, "standard input");
    FILE *file = fopen(path, "re");
    if (!file) return cli_say(EXIT_FAILED, "cannot read %s: %s", path, strerror(errno));
    int code = import_one(import, file, path);
    fclose(file);
    return code;
}

static void print_result(const Import *import)
{
    const char *format =
        import->cli->is_json
            ? "{\"sessions_new\": %" PRIuFAST64 ", \"sessions_known\": %" PRIuFAST64
              ", \"entries_new\": %" PRIuFAST64 ", \"entries_known\": %" PRIuFAST64 "}\n"
            : "sessions: %" PRIuFAST64 " new, %" PRIuFAST64 " there already; entries: %" PRIuFAST64
              " new, %" PRIuFAST64 " there already\n";
    printf(format, import->sessions_new, import->sessions_known, import->entries_new,
           import->entries_known);
}

static int run(Cli *cli, int argument_count, char **arguments)
{
    Tine *tine;
    int code = cli_connect(cli, &tine);
    if (code) return code;
    static Import import;
    import.cli = cli;
    import.project_dir = option_text(cli, "project");
    bool is_pi = argument_count > 1 && strcmp(arguments[0], "pi") == 0;
    ImportFile import_one = is_pi ? pi_import : import_file;
    for (int i = is_pi; i < argument_count && !code; i++) {
        code = import_path(&import, import_one, arguments[i]);
    }
    if (!code || import.entries_new > 0) print_result(&import);
    import_free(&import);
    return code;
}

static const Option OPTIONS[] = {
    {"project", 'p', "DIR", "into this project directory, not into the file's"},
    {NULL, 0, NULL, NULL},
};

const Command command_import = {
    .name = "import",
    .arguments = "[pi] FILE…",
    .summary = "takes back what export wrote, or session files of pi",
    .details = "From standard input with -. Sessions and entries get new ids, and keep the old\n"
               "ones as external ids (source \"tine\"), so the same file may be imported again:\n"
               "what is there already is left alone, and one that was interrupted goes on.\n"
               "With pi in front, files are sessions of the pi coding agent (source \"pi\").",
    .options = OPTIONS,
    .examples = {"tine import session.jsonl", "ssh host tine export --all | tine import -",
                 "tine import pi ~/.pi/agent/sessions/*/*.jsonl"},
    .argument_count_min = 1,
    .argument_count_max = COMMAND_ANY_COUNT,
    .run = run,
};
