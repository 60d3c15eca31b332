// tine check: checks every table of a store against the others.

#include <inttypes.h>

#include "cli.h"
#include "options.h"
#include "place.h"
#include "progress.h"
#include "store/files.h"
#include "store/manifest.h"

enum { LIMIT_DEFAULT = 100 };

// State of the checking process.
typedef struct Printing {
    const Cli *cli;
    int64_t limit;
    int64_t count;
} Printing;

static void print_finding(Printing *printing, const char *kind, const char *table, const char *text)
{
    const Printer *out = &printing->cli->out;
    if (printing->count++ >= printing->limit) return;
    if (!printing->cli->is_json) {
        print(out, "%s: %s\n", kind, text);
        return;
    }
    print(out,
          "%s\n  {\"kind\": \"%s\", \"table\": \"%s\", \"text\": ", printing->count > 1 ? "," : "",
          kind, table);
    print_json_text(out, slice_of(text));
    print(out, "}");
}

static void print_damage(void *context, const Damage *damage)
{
    print_finding(context, damage_name(damage->kind), store_table_name(damage->table),
                  damage->text);
}

static void print_page(void *context, const PageFinding *finding)
{
    print_finding(context, "file", "", finding->text);
}

static void print_manifest(void *context, const char *text)
{
    print_finding(context, damage_name(DAMAGE_MANIFEST), "", text);
}

static void print_summary(const Printer *out, const Verified *verified)
{
    const StoreCheckResult *result = &verified->result;
    if (result->damage_count == 0) {
        print(out, "no damage: %" PRIu64 " sessions, %" PRIu64 " messages, %" PRIu64 " events%s\n",
              result->sessions, result->messages, result->events,
              verified->has_manifest ? "; the files are as the manifest says" : "");
        return;
    }
    print(out, "\n%-20s %8s  %s\n", "DAMAGE", "PLACES", "WHAT IT MEANS");
    for (int kind = 0; kind < DAMAGE_KIND_COUNT; kind++) {
        if (result->counts[kind] == 0) continue;
        print(out, "%-20s %8" PRIu64 "  %s\n", damage_name((DamageKind)kind), result->counts[kind],
              damage_text((DamageKind)kind));
    }
}

static void print_json_end(const Printer *out, const Verified *verified, int64_t limit)
{
    const StoreCheckResult *result = &verified->result;
    bool is_first = true;
    uint64_t damage_count = result->damage_count;
    if (!verified->is_read) {
        bool is_after = damage_count + verified->page_damage_count > 0 && limit > 0;
        damage_count += verified->page_damage_count > 0 ? verified->page_damage_count : 1;
        print(out, "%s\n  {\"kind\": \"file\", \"table\": \"\", \"text\": ", is_after ? "," : "");
        print_json_text(out, slice_of(verified->detail.text));
        print(out, "}");
    }
    print(out, "\n], \"counts\": {");
    for (int kind = 0; kind < DAMAGE_KIND_COUNT; kind++) {
        if (result->counts[kind] == 0) continue;
        print(out, "%s\"%s\": %" PRIu64, is_first ? "" : ", ", damage_name((DamageKind)kind),
              result->counts[kind]);
        is_first = false;
    }
    print(out,
          "}, \"damage_count\": %" PRIu64 ", \"sessions\": %" PRIu64 ", \"messages\": %" PRIu64
          ", \"events\": %" PRIu64 ", \"has_manifest\": %s}\n",
          damage_count, result->sessions, result->messages, result->events,
          verified->has_manifest ? "true" : "false");
}

static int print_result(const Cli *cli, const Verified *verified, int64_t limit)
{
    bool is_damage = verified->is_read || verified->error == ERROR_CORRUPT;
    if (cli->is_json) {
        print_json_end(&cli->out, verified, limit);
    } else if (verified->is_read) {
        print_summary(&cli->out, verified);
    } else if (is_damage) {
        print(&cli->out, "file: %s\n", verified->detail.text);
    }
    if (is_damage) return verified_is_clean(verified) ? EXIT_OK : EXIT_FAILED;
    return cli_say(verified->error == ERROR_UNAVAILABLE ? EXIT_UNAVAILABLE : EXIT_FAILED, "%s",
                   verified->detail.text);
}

static int run(Cli *cli, int argument_count, char **arguments)
{
    Place place;
    Printing printing = {.cli = cli, .limit = LIMIT_DEFAULT};
    int code = option_number(cli, "limit", 0, INT64_MAX, &printing.limit);
    if (!code) code = place_find(cli, &place);
    if (!code && argument_count > 0) {
        int size = snprintf(place.directory, sizeof(place.directory), "%s", arguments[0]);
        if (size >= (int)sizeof(place.directory)) return cli_usage(cli, "the path is too long");
    }
    if (code) return code;
    // Checked before anything is printed: a directory without a store is not a damaged store.
    if (!store_files_exist(place.directory) && !manifest_exists(place.directory)) {
        return cli_say(EXIT_NOT_FOUND, "there is no store in %s", place.directory);
    }
    if (cli->is_json) print(&cli->out, "{\"damage\": [");
    Verified verified;
    ErrorDetail detail = {{0}};
    VerifyOptions options = {
        .directory = place.directory,
        .found = print_damage,
        .found_page = print_page,
        .found_manifest = print_manifest,
        .context = &printing,
    };
    Verification verification;
    Error error = verify_begin(&options, &detail, &verification);
    if (error) return place_fail(error, &detail);
    Progress *progress = progress_begin("checking", NULL, 0);
    verify_end(&verification, &verified);
    progress_end(progress);
    if (verified_is_clean(&verified) && store_files_forget_crashes(place.directory)) {
        cli_note("tined leaves safe mode at its next start\n");
    }
    return print_result(cli, &verified, printing.limit);
}

static const Option OPTIONS[] = {
    {"data", 0, "DIR", "directory of the store (default: $TINE_DATA, or that of tined)"},
    {"limit", 'n', "N", "print at most N damages (default: 100)"},
    {NULL, 0, NULL, NULL},
};

const Command command_check = {
    .name = "check",
    .arguments = "[DIRECTORY]",
    .summary = "checks a store: the pages of its file, and every table against the others",
    .details = "Works on a store that no tined has open, or on a backup. Changes nothing,\n"
               "except that a relaxed store goes back to its last flush after a power cut,\n"
               "and that tined leaves safe mode if there is no damage.\n"
               "The files of a backup are compared with its manifest first: their sizes and the\n"
               "XXH3-128 hash of each. The backup has none if it was opened for writing, or if\n"
               "an older tine made it.\n"
               "Then the pages of the file are walked; if they are damaged, no row is read.\n"
               "Each damage is one line that begins with its kind; \"file\" is damage of the\n"
               "file itself. Exit code 1: damaged; 3: no store; 4: a tined has the store open\n"
               "(check a backup: tine backup).",
    .options = OPTIONS,
    .examples = {"tine check", "tine check ./tine-backup-20261118T151124Z",
                 "tine check --json | jq .counts"},
    .argument_count_max = 1,
    .run = run,
};
