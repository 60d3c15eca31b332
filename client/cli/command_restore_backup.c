// tine restore-backup: replaces the store by a backup.

#include <inttypes.h>

#include "cli.h"
#include "place.h"
#include "store/files.h"
#include "store/manifest.h"

typedef struct Restore {
    const Cli *cli;
    Place place;
    char kept[PATH_MAX + 64];
    bool is_kept;
    Verified verified;
} Restore;

static void print_result(const Restore *restore);

static int run(Cli *cli, int argument_count, char **arguments)
{
    (void)argument_count;
    static Restore restore;
    restore.cli = cli;
    if (store_files_bytes(arguments[0]) == 0 && !manifest_exists(arguments[0])) {
        return cli_say(EXIT_NOT_FOUND, "there is no backup in %s", arguments[0]);
    }
    int code = place_find(cli, &restore.place);
    if (code) return code;
    snprintf(restore.kept, sizeof(restore.kept), "%s/before-restore-%s", restore.place.directory,
             stamp_now().text);
    RestoreOptions options = {
        .backup = arguments[0],
        .directory = restore.place.directory,
        .kept = restore.kept,
        .hooks = place_progress(),
    };
    ErrorDetail detail = {{0}};
    Error error = backup_restore(&options, &detail, &restore.verified, &restore.is_kept);
    if (error) return place_fail(error, &detail);
    print_result(&restore);
    return EXIT_OK;
}

static void print_result(const Restore *restore)
{
    const StoreCheckResult *result = &restore->verified.result;
    const Printer *out = &restore->cli->out;
    if (restore->cli->is_json) {
        print(out, "{\"data\": ");
        print_json_text(out, slice_of(restore->place.directory));
        if (restore->is_kept) {
            print(out, ", \"kept\": ");
            print_json_text(out, slice_of(restore->kept));
        }
        print(out, ", \"sessions\": %" PRIu64 ", \"messages\": %" PRIu64 "}\n", result->sessions,
              result->messages);
        return;
    }
    print(out, "%s: %" PRIu64 " sessions, %" PRIu64 " messages\n", restore->place.directory,
          result->sessions, result->messages);
    if (restore->is_kept) print(out, "the old store is kept in %s\n", restore->kept);
}

static const Option OPTIONS[] = {
    {"data", 0, "DIR", "directory of the store (default: $TINE_DATA, or that of tined)"},
    {NULL, 0, NULL, NULL},
};

const Command command_restore_backup = {
    .name = "restore-backup",
    .arguments = "BACKUP",
    .summary = "replaces the store by a backup, and keeps the old store",
    .details = "Refuses while a tined has the store open: stop it first. The backup is compared\n"
               "with its manifest, copied and checked before anything changes, then replaces the\n"
               "store in one step. The old store is kept beside it in before-restore-TIME; remove\n"
               "it when you like.\n"
               "Events start again, and watchers are told that the store changed.",
    .options = OPTIONS,
    .examples = {"tine restore-backup ./tine-backup-20261118T151124Z",
                 "tine restore-backup /mnt/backups/tine-2026-11-18 --data /srv/tine"},
    .argument_count_min = 1,
    .argument_count_max = 1,
    .run = run,
};
