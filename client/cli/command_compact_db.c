// tine compact-db: gives the space that nothing uses any more back to the file system.

#include <inttypes.h>

#include "cli.h"
#include "format.h"
#include "place.h"
#include "progress.h"
#include "store/copy.h"
#include "verify.h"

static int make_copy(const char *directory, const char *partial)
{
    char file[PATH_MAX + 16];
    snprintf(file, sizeof(file), "%s/data.mdb", partial);
    StoreCopy copy = {.from = directory, .to = partial, .is_compact = true};
    ErrorDetail detail = {{0}};
    Progress *progress = progress_begin("copying", file, 0);
    Error error = store_copy(&copy, &detail);
    progress_end(progress);
    if (!error) return EXIT_OK;
    return cli_say(EXIT_FAILED, "%s", detail.text[0] ? detail.text : error_text(error));
}

static int compact(const Place *place)
{
    char partial[PATH_MAX];
    int code = place_partial(place, "compact", partial);
    if (code) return code;
    partial_guard(partial);
    code = make_copy(place->directory, partial);
    if (code) return code;
    Verified verified;
    code = verify_copy(partial, &verified);
    if (!code && !verified_is_clean(&verified)) {
        (void)verified_say(&verified, place->directory);
        code = cli_say(EXIT_FAILED, "nothing was changed");
    }
    if (!code) code = place_swap(place, partial, NULL);
    if (code) partial_remove(partial);
    return code;
}

static int run(Cli *cli, int argument_count, char **arguments)
{
    (void)argument_count;
    (void)arguments;
    static Place place;
    int code = place_find(cli, &place);
    if (code) return code;
    uint64_t before = place_bytes(place.directory);
    if (before == 0) return cli_say(EXIT_NOT_FOUND, "there is no store in %s", place.directory);
    code = place_lock(&place);
    if (!code) code = compact(&place);
    place_release(&place);
    if (code) return code;
    uint64_t after = place_bytes(place.directory);
    if (cli->is_json) {
        printf("{\"bytes_before\": %" PRIu64 ", \"bytes_after\": %" PRIu64 "}\n", before, after);
    } else {
        printf("%s: %s before, %s now\n", place.directory, format_bytes(before).text,
               format_bytes(after).text);
    }
    return EXIT_OK;
}

static const Option OPTIONS[] = {
    {"data", 0, "DIR", "the store's directory; $TINE_DATA, or where tined keeps it"},
    {NULL, 0, NULL, NULL},
};

const Command command_compact_db = {
    .name = "compact-db",
    .arguments = "",
    .summary = "gives the store's unused space back to the file system",
    .details = "Refuses while a tined has the store: stop it first. A copy without what is free\n"
               "is made beside it, checked, and takes its place at once; it needs room on the\n"
               "disk for as long as both are there.",
    .options = OPTIONS,
    .examples = {"tine compact-db", "tine compact-db --data /srv/tine --json"},
    .run = run,
};
