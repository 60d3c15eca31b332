// tine import: takes back what export wrote.

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "import.h"
#include "importers/pi/pi_import.h"
#include "input.h"
#include "json_message.h"
#include "progress.h"

// One run of the command: what it imports, and into what.
typedef struct Run {
    Importer importer; // of other programs' files
    Import import;     // of our own exports
} Run;

static int import_export(Run *run, FILE *file, const char *name)
{
    Import *import = &run->import;
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

static uint64_t file_bytes(FILE *file)
{
    struct stat status;
    bool is_known = fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode);
    return is_known ? (uint64_t)status.st_size : 0;
}

static int import_pi(Run *run, FILE *file, const char *name)
{
    ImportReport *report = &run->importer.report;
    Progress *progress = progress_begin_counted(name, &report->bytes_done, file_bytes(file));
    int status = pi_import(&run->importer, file, name);
    progress_end(progress);
    if (!status) return EXIT_OK;
    return exit_code_of(status) == EXIT_UNAVAILABLE ? EXIT_UNAVAILABLE : EXIT_FAILED;
}

typedef int (*ImportFile)(Run *run, FILE *file, const char *name);

static int import_path(Run *run, ImportFile import_one, const char *path)
{
    if (strcmp(path, "-") == 0) return import_one(run, stdin, "standard input");
    FILE *file = fopen(path, "re");
    if (!file) return cli_say(EXIT_FAILED, "cannot read %s: %s", path, strerror(errno));
    int code = import_one(run, file, path);
    fclose(file);
    return code;
}

static void print_result(const Cli *cli, const ImportReport *report)
{
    const char *format =
        cli->is_json ? "{\"sessions_new\": %" PRIuFAST64 ", \"sessions_known\": %" PRIuFAST64
                       ", \"entries_new\": %" PRIuFAST64 ", \"entries_known\": %" PRIuFAST64 "}\n"
                     : "sessions: %" PRIuFAST64 " new, %" PRIuFAST64
                       " there already; entries: %" PRIuFAST64 " new, %" PRIuFAST64
                       " there already\n";
    printf(format, report->sessions_new, report->sessions_known, report->entries_new,
           report->entries_known);
}

static void say_problem(void *context, const char *text)
{
    (void)context;
    (void)cli_say(EXIT_FAILED, "%s", text);
}

static int run(Cli *cli, int argument_count, char **arguments)
{
    Tine *tine;
    int code = cli_connect(cli, &tine);
    if (code) return code;
    static Run state;
    ImportReport *report = &state.importer.report;
    importer_init(&state.importer, tine, &cli->call);
    report->say = say_problem;
    state.import.cli = cli;
    state.import.report = report;
    state.import.project_dir = state.importer.project_dir = option_text(cli, "project");
    bool is_pi = argument_count > 1 && strcmp(arguments[0], "pi") == 0;
    ImportFile import_one = is_pi ? import_pi : import_export;
    for (int i = is_pi; i < argument_count && !code; i++) {
        code = import_path(&state, import_one, arguments[i]);
    }
    if (!code || report->entries_new > 0) print_result(cli, report);
    import_free(&state.import);
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
