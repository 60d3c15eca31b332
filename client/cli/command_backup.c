// tine backup: a copy of the store while tined runs, checked before it gets its name.

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "daemon/paths.h"
#include "format.h"
#include "json.h"
#include "os/clock.h"
#include "os/directory.h"
#include "os/path.h"
#include "place.h"
#include "progress.h"
#include "store/copy.h"
#include "verify.h"

typedef struct Backup {
    Cli *cli;
    Place from;
    char to[PATH_MAX], partial[PATH_MAX];
    char instance_id[INSTANCE_ID_BYTES + 1]; // of the tined that answers; "": none does
    Verified verified;
    int64_t begun_ns;
} Backup;

static int find_target(Backup *backup, const char *argument);
static int ask_instance(Backup *backup);
static int make_copy(Backup *backup);
static int check_copy(Backup *backup);
static int name_copy(const Backup *backup);
static void print_result(const Backup *backup);

static int run(Cli *cli, int argument_count, char **arguments)
{
    static Backup backup;
    backup.cli = cli;
    backup.begun_ns = clock_monotonic_ns();
    int code = place_find(cli, &backup.from);
    if (!code) code = find_target(&backup, argument_count > 0 ? arguments[0] : NULL);
    if (!code) code = ask_instance(&backup);
    if (!code) code = make_copy(&backup);
    if (code) return code;
    code = check_copy(&backup);
    if (!code) code = name_copy(&backup);
    if (code) {
        partial_remove(backup.partial);
        return code;
    }
    print_result(&backup);
    return EXIT_OK;
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
    if (access(backup->to, F_OK) == 0) {
        return cli_say(EXIT_FAILED, "%s exists already; a backup is never written over",
                       backup->to);
    }
    size = snprintf(backup->partial, PATH_MAX, "%s.partial-%ld", backup->to, (long)getpid());
    return size < PATH_MAX ? EXIT_OK : cli_usage(backup->cli, "the path is too long");
}

// A tined that answers must be the one whose store this is, or a person would find out too late
// that it was another. Without an answer the store in the directory is meant.
static int ask_instance(Backup *backup)
{
    Cli *cli = backup->cli;
    static const char IPC[] = "ipc://";
    if (option_text(cli, "data")) return EXIT_OK;
    if (strncmp(cli->url, IPC, strlen(IPC)) != 0) {
        return cli_usage(cli, "a backup is made where the files are: say --data DIR");
    }
    Tine *tine;
    if (tine_open(cli->url, &cli->status, &tine)) return cli_fail(cli, &cli->status);
    TineCallOptions options = {.out_status = &cli->status, .no_retry = true, .timeout_ms = 10000};
    DescribeRequest request = DESCRIBE_REQUEST__INIT;
    CLEANUP(message_freep) DescribeResponse *reply = NULL;
    if (tine_describe(tine, &options, &request, &reply) == 0) {
        snprintf(backup->instance_id, sizeof(backup->instance_id), "%s", reply->instance_id);
    }
    tine_close(tine);
    return EXIT_OK;
}

static int make_copy(Backup *backup)
{
    char file[PATH_MAX + 16];
    snprintf(file, sizeof(file), "%s/data.mdb", backup->partial);
    StoreCopy copy = {
        .from = backup->from.directory,
        .to = backup->partial,
        .is_compact = option_is_given(backup->cli, "compact"),
    };
    ErrorDetail detail = {{0}};
    partial_guard(backup->partial);
    Progress *progress = progress_begin("copying", file, place_bytes(backup->from.directory));
    Error error = store_copy(&copy, &detail);
    progress_end(progress);
    if (!error) return EXIT_OK;
    bool is_missing = place_bytes(backup->from.directory) == 0;
    return cli_say(is_missing ? EXIT_NOT_FOUND : EXIT_FAILED, "%s",
                   detail.text[0] ? detail.text : error_text(error));
}

static int check_copy(Backup *backup)
{
    int code = verify_copy(backup->partial, &backup->verified);
    partial_clean(backup->partial);
    if (code) return code;
    const Verified *verified = &backup->verified;
    if (!verified_is_clean(verified) && !option_is_given(backup->cli, "damaged")) {
        (void)verified_say(verified, backup->from.directory);
        return cli_say(EXIT_FAILED, "no backup was made; --damaged makes one all the same");
    }
    const char *instance_id = backup->instance_id;
    if (verified->is_read && *instance_id && strcmp(verified->instance_id, instance_id) != 0) {
        return cli_say(EXIT_FAILED,
                       "the tined behind %s keeps another store than the one in %s; say which is "
                       "meant with --data",
                       backup->cli->url, backup->from.directory);
    }
    return EXIT_OK;
}

static int name_copy(const Backup *backup)
{
    ErrorDetail detail = {{0}};
    char above[PATH_MAX];
    path_directory_of(backup->to, above, sizeof(above));
    if (rename(backup->partial, backup->to) != 0) {
        return cli_say(EXIT_FAILED, "cannot rename the backup to %s: %s", backup->to,
                       strerror(errno));
    }
    partial_guard(NULL);
    if (directory_flush(above, &detail)) return cli_say(EXIT_FAILED, "%s", detail.text);
    return EXIT_OK;
}

static void print_result(const Backup *backup)
{
    const StoreCheckResult *result = &backup->verified.result;
    uint64_t bytes = place_bytes(backup->to);
    int64_t took_ms = (clock_monotonic_ns() - backup->begun_ns) / 1000000;
    if (backup->cli->is_json) {
        printf("{\"path\": ");
        json_write_text(stdout, slice_of(backup->to));
        printf(", \"bytes\": %" PRIu64 ", \"sessions\": %" PRIu64 ", \"messages\": %" PRIu64
               ", \"damage_count\": %" PRIu64 ", \"instance_id\": \"%s\", \"took_ms\": %" PRId64
               "}\n",
               bytes, result->sessions, result->messages, result->damage_count,
               backup->verified.instance_id, took_ms);
        return;
    }
    printf("%s: %s, %" PRIu64 " sessions, %" PRIu64 " messages, %s\n", backup->to,
           format_bytes(bytes).text, result->sessions, result->messages,
           verified_is_clean(&backup->verified) ? "no damage" : "damaged");
}

static const Option OPTIONS[] = {
    {"data", 0, "DIR", "the store's directory; $TINE_DATA, or where tined keeps it"},
    {"compact", 0, NULL, "leave out what is free in the file"},
    {"damaged", 0, NULL, "also of a store that is damaged"},
    {NULL, 0, NULL, NULL},
};

const Command command_backup = {
    .name = "backup",
    .arguments = "[DIRECTORY]",
    .summary = "copies the store while tined runs, and checks the copy",
    .details = "The copy holds every write that was acknowledged before it began, and none half.\n"
               "It is a directory that is a store itself: `tine restore-backup` takes it back,\n"
               "`tine --url embedded:DIRECTORY ls` looks into it. It gets its name when it is on\n"
               "the disk and was checked; the default is tine-backup-TIME, here.",
    .options = OPTIONS,
    .examples = {"tine backup", "tine backup /mnt/backups/tine-$(date +%F)",
                 "tine backup --compact --json | jq -r .path"},
    .argument_count_max = 1,
    .run = run,
};
