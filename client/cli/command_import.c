// tine import: imports what export wrote, and session files of pi.

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "connect.h"
#include "import.h"
#include "importers/import_files.h"
#include "importers/pi/pi_import.h"
#include "input.h"
#include "json_message.h"
#include "options.h"
#include "progress.h"

#define IMPORT_PI "tine import pi ~/.pi/agent/sessions"

static void say_problem(void *context, const char *text)
{
    Progress *progress = context;
    progress_pause(progress);
    (void)cli_say(EXIT_FAILED, "%s", text);
    progress_resume(progress);
}

static void print_result(const Cli *cli, const ImportReport *report)
{
    if (cli->is_json) {
        print(&cli->out,
              "{\"sessions_new\": %" PRIuFAST64 ", \"sessions_known\": %" PRIuFAST64
              ", \"entries_new\": %" PRIuFAST64 ", \"entries_known\": %" PRIuFAST64
              ", \"files_failed\": %" PRIuFAST64 "}\n",
              report->sessions_new, report->sessions_known, report->entries_new,
              report->entries_known, report->files_failed);
        return;
    }
    print(&cli->out,
          "sessions: %" PRIuFAST64 " new, %" PRIuFAST64 " there already; entries: %" PRIuFAST64
          " new, %" PRIuFAST64 " there already\n",
          report->sessions_new, report->sessions_known, report->entries_new, report->entries_known);
    uint64_t left = report->files_total - report->files_imported - report->files_failed;
    if (report->files_failed == 0 && left == 0) return;
    print(&cli->out, "files: %" PRIuFAST64 " imported, %" PRIuFAST64 " failed",
          report->files_imported, report->files_failed);
    if (left > 0) print(&cli->out, ", %" PRIu64 " not tried", left);
    print(&cli->out, "\n");
}

static int import_export(Import *import, FILE *file, const char *name)
{
    CLEANUP(text_freep) char *line = NULL;
    size_t capacity = 0;
    ssize_t size;
    int code = EXIT_OK;
    import->line = 0;
    while (!code && (size = getline(&line, &capacity, file)) >= 0) {
        import->line++;
        if ((size_t)size > JSON_TEXT_BYTES_MAX) return import_fail(import, "it is too long");
        Slice text = slice(line, (size_t)size);
        if (import->line == 1 && pi_is_session(text)) {
            return cli_say(EXIT_FAILED, "%s is a session file of pi: tine import pi %s", name,
                           file == stdin ? "-" : name);
        }
        code = import_line(import, text);
    }
    if (!code && ferror(file)) {
        code = cli_say(EXIT_FAILED, "cannot read %s: %s", name, strerror(errno));
    }
    if (!code) code = import_end(import);
    import->has_header = false;
    return code;
}

static int import_export_path(Import *import, const char *path)
{
    if (strcmp(path, "-") == 0) return import_export(import, stdin, "standard input");
    FILE *file = fopen(path, "re");
    if (!file) return cli_say(EXIT_FAILED, "cannot read %s: %s", path, strerror(errno));
    int code = import_export(import, file, path);
    fclose(file);
    return code;
}

static int import_exports(Cli *cli, Importer *importer, int count, char **paths)
{
    static Import import;
    int code = EXIT_OK;
    import.cli = cli;
    import.report = &importer->report;
    import.project_dir = importer->project_dir;
    for (int i = 0; i < count && !code; i++)
        code = import_export_path(&import, paths[i]);
    import_free(&import);
    if (!code || importer->report.entries_new > 0) print_result(cli, &importer->report);
    return code;
}

// Imports session files of pi, and all in directories.
static int import_pi(Cli *cli, Importer *importer, int count, char **paths)
{
    ImportReport *report = &importer->report;
    CLEANUP(import_files_free) ImportFiles files = {0};
    for (int i = 0; i < count; i++) {
        if (import_files_add(&files, importer, paths[i], ".jsonl")) {
            return cli_say(EXIT_FAILED, "out of memory");
        }
    }
    Progress *progress = progress_begin_import(report);
    report->context = progress;
    int status = import_files_run(&files, importer, pi_import);
    report->context = NULL;
    progress_end(progress);
    if (report->files_failed == 0 || report->files_total > 1 || report->entries_new > 0) {
        print_result(cli, report);
    }
    if (exit_code_of(status) == EXIT_UNAVAILABLE) return EXIT_UNAVAILABLE;
    return report->files_failed > 0 ? EXIT_FAILED : EXIT_OK;
}

static int run(Cli *cli, int argument_count, char **arguments)
{
    bool is_pi = argument_count > 0 && strcmp(arguments[0], "pi") == 0;
    if (argument_count == 0) {
        return cli_usage(cli, "name files: tine import FILE, or " IMPORT_PI);
    }
    if (is_pi && argument_count == 1) {
        return cli_usage(cli, "name files or directories: " IMPORT_PI);
    }
    Tine *tine;
    int code = cli_connect(cli, &tine);
    if (code) return code;
    static Importer importer;
    importer_init(&importer, tine, &cli->call);
    importer.project_dir = option_text(cli, "project");
    importer.report.say = say_problem;
    if (is_pi) return import_pi(cli, &importer, argument_count - 1, arguments + 1);
    return import_exports(cli, &importer, argument_count, arguments);
}

static const Option OPTIONS[] = {
    {"project", 'p', "DIR", "the project directory, instead of the one in the file"},
    {NULL, 0, NULL, NULL},
};

const Command command_import = {
    .name = "import",
    .arguments = "[pi] PATH…",
    .summary = "imports what export wrote, or session files of pi",
    .details = "- reads standard input. Sessions and entries get new IDs and keep the old ones\n"
               "as external IDs (source \"tine\"). So the same file can be imported again:\n"
               "records that are there already stay as they are, and an interrupted import\n"
               "continues. With pi, files are sessions of the pi coding agent (source \"pi\"); a\n"
               "directory means all *.jsonl files in it and below it. A file that cannot be\n"
               "imported is reported, the others are imported, and the exit code is 1.",
    .options = OPTIONS,
    .examples = {"tine import session.jsonl", "ssh host tine export --all | tine import -",
                 IMPORT_PI},
    .argument_count_max = COMMAND_ANY_COUNT,
    .run = run,
};
