// tine restore-backup: a backup in the place of the store.

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "daemon/paths.h"
#include "json.h"
#include "os/directory.h"
#include "place.h"
#include "progress.h"
#include "store/copy.h"
#include "verify.h"

typedef struct Restore {
    const Cli *cli;
    const char *backup;
    Place place;
    char partial[PATH_MAX], kept[PATH_MAX + 64];
    bool keeps_old;
    Verified verified;
} Restore;

static int copy_backup(Restore *restore);
static int renew(const Restore *restore);
static void print_result(const Restore *restore);

static int lock_place(Restore *restore)
{
    ErrorDetail detail = {{0}};
    int code = place_find(restore->cli, &restore->place);
    if (code) return code;
    const char *directory = restore->place.directory;
    if (directory_make(directory, &detail)) return cli_say(EXIT_FAILED, "%s", detail.text);
    code = place_lock(&restore->place);
    if (code) return code;
    restore->keeps_old = place_bytes(directory) > 0;
    snprintf(restore->kept, sizeof(restore->kept), "%s/before-restore-%s", directory,
             stamp_now().text);
    return place_partial(&restore->place, "restore", restore->partial);
}

static int run(Cli *cli, int argument_count, char **arguments)
{
    (void)argument_count;
    static Restore restore;
    restore.cli = cli;
    restore.backup = arguments[0];
    restore.place.lock = -1;
    if (place_bytes(restore.backup) == 0) {
        return cli_say(EXIT_NOT_FOUND, "there is no backup in %s", restore.backup);
    }
    int code = lock_place(&restore);
    if (!code) code = copy_backup(&restore);
    if (!code) {
        code = verify_copy(restore.partial, &restore.verified);
        if (!code && !verified_is_clean(&restore.verified)) {
            code = verified_say(&restore.verified, restore.backup);
        }
        if (!code) code = renew(&restore);
        if (!code) code = place_swap(&restore.place, restore.partial, restore.kept);
        if (code) partial_remove(restore.partial);
    }
    place_release(&restore.place);
    if (!code) print_result(&restore);
    return code;
}

static int copy_backup(Restore *restore)
{
    char file[PATH_MAX + 16];
    snprintf(file, sizeof(file), "%s/data.mdb", restore->partial);
    partial_guard(restore->partial);
    StoreCopy copy = {.from = restore->backup, .to = restore->partial};
    ErrorDetail detail = {{0}};
    Progress *progress = progress_begin("copying", file, place_bytes(restore->backup));
    Error error = store_copy(&copy, &detail);
    progress_end(progress);
    if (!error) return EXIT_OK;
    return cli_say(EXIT_FAILED, "%s", detail.text[0] ? detail.text : error_text(error));
}

static int renew(const Restore *restore)
{
    StoreOptions options = {.directory = restore->partial};
    ErrorDetail detail = {{0}};
    Store *store = NULL;
    Error error = store_open(&options, &detail, &store);
    if (!error) error = store_renew(store, &detail);
    store_close(store);
    if (!error) return EXIT_OK;
    return cli_say(EXIT_FAILED, "%s", detail.text[0] ? detail.text : error_text(error));
}

static void print_result(const Restore *restore)
{
    const StoreCheckResult *result = &restore->verified.result;
    if (restore->cli->is_json) {
        printf("{\"data\": ");
        json_write_text(stdout, slice_of(restore->place.directory));
        if (restore->keeps_old) {
            printf(", \"kept\": ");
            json_write_text(stdout, slice_of(restore->kept));
        }
        printf(", \"sessions\": %" PRIu64 ", \"messages\": %" PRIu64 "}\n", result->sessions,
               result->messages);
        return;
    }
    printf("%s: %" PRIu64 " sessions, %" PRIu64 " messages\n", restore->place.directory,
           result->sessions, result->messages);
    if (restore->keeps_old) printf("the old store is kept in %s\n", restore->kept);
}

static const Option OPTIONS[] = {
    {"data", 0, "DIR", "the store's directory; $TINE_DATA, or where tined keeps it"},
    {NULL, 0, NULL, NULL},
};

const Command command_restore_backup = {
    .name = "restore-backup",
    .arguments = "BACKUP",
    .summary = "puts a backup in the place of the store, and keeps the old one",
    .details = "Refuses while a tined has the store: stop it first. The backup is copied and\n"
               "checked before anything is changed, then takes the store's place at once; the\n"
               "old store is kept beside it, in before-restore-TIME, until you remove it. Events\n"
               "begin anew: whoever watches is told that the store changed.",
    .options = OPTIONS,
    .examples = {"tine restore-backup ./tine-backup-20261118T151124Z",
                 "tine restore-backup /mnt/backups/tine-2026-11-18 --data /srv/tine"},
    .argument_count_min = 1,
    .argument_count_max = 1,
    .run = run,
};
