// tine compact-db: gives unused space of the store back to the file system.

#include <inttypes.h>

#include "cli.h"
#include "format.h"
#include "place.h"
#include "store/files.h"

static int run(Cli *cli, int argument_count, char **arguments)
{
    (void)argument_count;
    (void)arguments;
    static Place place;
    int code = place_find(cli, &place);
    if (code) return code;
    uint64_t before = store_files_bytes(place.directory);
    if (before == 0) return cli_say(EXIT_NOT_FOUND, "there is no store in %s", place.directory);
    ErrorDetail detail = {{0}};
    Verified verified;
    BackupHooks hooks = place_progress();
    Error error = backup_compact(place.directory, &hooks, &detail, &verified);
    if (error) {
        code = place_fail(error, &detail);
        return error == ERROR_CORRUPT ? cli_say(code, "nothing was changed") : code;
    }
    uint64_t after = store_files_bytes(place.directory);
    if (cli->is_json) {
        print(&cli->out, "{\"bytes_before\": %" PRIu64 ", \"bytes_after\": %" PRIu64 "}\n", before,
              after);
    } else {
        print(&cli->out, "%s: %s before, %s now\n", place.directory, format_bytes(before).text,
              format_bytes(after).text);
    }
    return EXIT_OK;
}

static const Option OPTIONS[] = {
    {"data", 0, "DIR", "directory of the store (default: $TINE_DATA, or that of tined)"},
    {NULL, 0, NULL, NULL},
};

const Command command_compact_db = {
    .name = "compact-db",
    .arguments = "",
    .summary = "gives unused space of the store back to the file system",
    .details = "Refuses while a tined has the store open: stop it first. A copy without unused\n"
               "space is made beside the store, checked, and replaces it in one step. The disk\n"
               "needs space for both in the meantime.",
    .options = OPTIONS,
    .examples = {"tine compact-db", "tine compact-db --data /srv/tine --json"},
    .run = run,
};
