// tine backup: copies the store while tined runs, and checks the copy before it gets its name.

#include <inttypes.h>
#include <string.h>

#include "cli.h"
#include "format.h"
#include "options.h"
#include "os/clock.h"
#include "os/path.h"
#include "place.h"
#include "store/files.h"

typedef struct Backup {
    Cli *cli;
    Place from;
    char to[PATH_MAX];
    char instance_id[INSTANCE_ID_BYTES + 1]; // of the tined that answers; "" if none does
    Verified verified;
    int64_t begun_ns;
} Backup;

static int find_target(Backup *backup, const char *argument);
static int ask_instance(Backup *backup);
static int make(Backup *backup);
static int fail(const Backup *backup, Error error, const ErrorDetail *detail);
static void print_result(const Backup *backup);

static int run(Cli *cli, int argument_count, char **arguments)
{
    static Backup backup;
    backup.cli = cli;
    backup.begun_ns = clock_monotonic_ns();
    int code = place_find(cli, &backup.from);
    if (!code) code = find_target(&backup, argument_count > 0 ? arguments[0] : NULL);
    if (!code) code = ask_instance(&backup);
    if (!code) code = make(&backup);
    if (!code) print_result(&backup);
    return code;
}

static int find_target(Backup *backup, const char *argument)
{
    ErrorDetail detail = {{0}};
    int size = argument ? snprintf(backup->to, PATH_MAX, "%s", argument)
                        : snprintf(backup->to, PATH_MAX, "tine-backup-%s", stamp_now().text);
    while (size > 1 && size < PATH_MAX && backup->to[size - 1] == '/')
        backup->to[--size] = '\0';
    if (size <= 0 || size >= PATH_MAX - 32) return cli_usage(backup->cli, "the path is too long");
    if (path_make_absolute(backup->to, sizeof(backup->to), &detail)) {
        return cli_say(EXIT_FAILED, "%s", detail.text);
    }
    return EXIT_OK;
}

// Checks that a tined that answers keeps this store: otherwise a person would find out too late
// that another one was copied. Without an answer the store in the directory is copied.
static int ask_instance(Backup *backup)
{
    Cli *cli = backup->cli;
    static const char IPC[] = "ipc://";
    if (option_text(cli, "data")) return EXIT_OK;
    if (strncmp(cli->url, IPC, strlen(IPC)) != 0) {
        return cli_usage(cli, "a backup needs the files of the store: use --data DIR");
    }
    Tine *tine;
    if (tine_open(cli->url, &cli->status, &tine)) return cli_fail(cli, &cli->status);
    TineCallOptions options = cli->call;
    options.no_retry = true;
    DescribeRequest request = DESCRIBE_REQUEST__INIT;
    CLEANUP(message_freep) DescribeResponse *reply = NULL;
    if (tine_describe(tine, &options, &request, &reply) == 0) {
        snprintf(backup->instance_id, sizeof(backup->instance_id), "%s", reply->instance_id);
    }
    tine_close(tine);
    return EXIT_OK;
}

static int make(Backup *backup)
{
    BackupOptions options = {
        .from = backup->from.directory,
        .to = backup->to,
        .is_compact = option_is_given(backup->cli, "compact"),
        .accepts_damage = option_is_given(backup->cli, "damaged"),
        .instance_id = backup->instance_id,
        .hooks = place_progress(),
    };
    ErrorDetail detail = {{0}};
    Error error = backup_make(&options, &detail, &backup->verified);
    return error ? fail(backup, error, &detail) : EXIT_OK;
}

static int fail(const Backup *backup, Error error, const ErrorDetail *detail)
{
    const Verified *verified = &backup->verified;
    if (verified->is_read && error == ERROR_INVALID_ARGUMENT) {
        return cli_say(EXIT_FAILED,
                       "the tined at %s keeps another store than the one in %s; choose one with "
                       "--data",
                       backup->cli->url, backup->from.directory);
    }
    bool is_missing = store_files_bytes(backup->from.directory) == 0;
    int code = place_fail(error, detail);
    if (is_missing && error != ERROR_INVALID_ARGUMENT) return EXIT_NOT_FOUND;
    bool is_damaged = error == ERROR_CORRUPT || verified->error ||
                      (verified->is_read && !verified_is_clean(verified));
    if (!is_damaged || option_is_given(backup->cli, "damaged")) return code;
    return cli_say(EXIT_FAILED, "no backup was made; --damaged makes one nevertheless");
}

static void print_result(const Backup *backup)
{
    const StoreCheckResult *result = &backup->verified.result;
    uint64_t bytes = store_files_bytes(backup->to);
    int64_t took_ms = (clock_monotonic_ns() - backup->begun_ns) / 1000000;
    const Printer *out = &backup->cli->out;
    if (backup->cli->is_json) {
        print(out, "{\"path\": ");
        print_json_text(out, slice_of(backup->to));
        print(out,
              ", \"bytes\": %" PRIu64 ", \"sessions\": %" PRIu64 ", \"messages\": %" PRIu64
              ", \"damage_count\": %" PRIu64 ", \"instance_id\": \"%s\", \"took_ms\": %" PRId64
              "}\n",
              bytes, result->sessions, result->messages, result->damage_count,
              backup->verified.instance_id, took_ms);
        return;
    }
    print(out, "%s: %s, %" PRIu64 " sessions, %" PRIu64 " messages, %s\n", backup->to,
          format_bytes(bytes).text, result->sessions, result->messages,
          verified_is_clean(&backup->verified) ? "no damage" : "damaged");
}

static const Option OPTIONS[] = {
    {"data", 0, "DIR", "directory of the store (default: $TINE_DATA, or that of tined)"},
    {"compact", 0, NULL, "leave out unused space in the file"},
    {"damaged", 0, NULL, "copy a damaged store, too (not with --compact if its pages are damaged)"},
    {NULL, 0, NULL, NULL},
};

const Command command_backup = {
    .name = "backup",
    .arguments = "[DIRECTORY]",
    .summary = "copies the store while tined runs, and checks the copy",
    .details = "The copy has every write that was acknowledged before it began, and no partial\n"
               "write. It is a store in a directory: `tine restore-backup` restores it, `tine\n"
               "--url embedded:DIRECTORY ls` reads it. It gets its name when it is on disk and\n"
               "has been checked. Default: tine-backup-TIME in the current directory.\n"
               "A manifest is beside the data: a text file with its size and XXH3-128 hash. `tine\n"
               "check DIRECTORY` compares them. Opening the backup for writing, as tined and\n"
               "embedded: do, removes the manifest: read a copy to keep it.",
    .options = OPTIONS,
    .examples = {"tine backup", "tine backup /mnt/backups/tine-$(date +%F)",
                 "tine backup --compact --json | jq -r .path"},
    .argument_count_max = 1,
    .run = run,
};
