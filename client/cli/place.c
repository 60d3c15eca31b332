// Finds the store, and shows progress and errors of the engine.

#include "place.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/paths.h"
#include "options.h"
#include "os/path.h"
#include "progress.h"

int place_find(const Cli *cli, Place *out)
{
    const char *given = option_text(cli, "data");
    ErrorDetail detail = {{0}};
    if (!given) given = getenv("TINE_DATA");
    Error error = ERROR_NONE;
    if (given && *given) {
        if (strlen(given) >= sizeof(out->directory)) {
            return cli_say(EXIT_FAILED, "the path of the store is too long");
        }
        snprintf(out->directory, sizeof(out->directory), "%s", given);
        error = path_make_absolute(out->directory, sizeof(out->directory), &detail);
    } else {
        error = path_data_default(out->directory, sizeof(out->directory), &detail);
    }
    return error ? cli_say(EXIT_FAILED, "%s", detail.text) : EXIT_OK;
}

int place_fail(Error error, const ErrorDetail *detail)
{
    return cli_say(error == ERROR_UNAVAILABLE ? EXIT_UNAVAILABLE : EXIT_FAILED, "%s",
                   detail->text[0] ? detail->text : error_text(error));
}

// Only one step runs at a time.
static Progress *shown;
static char shown_file[PATH_MAX];

static void step_begin(void *context, const char *what, const char *file, uint64_t bytes)
{
    (void)context;
    if (file) snprintf(shown_file, sizeof(shown_file), "%s", file);
    shown = progress_begin(what, file ? shown_file : NULL, bytes);
}

static void step_end(void *context)
{
    (void)context;
    progress_end(shown);
}

BackupHooks place_progress(void)
{
    return (BackupHooks){.begin = step_begin, .end = step_end};
}

Stamp stamp_now(void)
{
    Stamp stamp;
    struct tm now;
    time_t seconds = time(NULL);
    gmtime_r(&seconds, &now);
    strftime(stamp.text, sizeof(stamp.text), "%Y%m%dT%H%M%SZ", &now);
    return stamp;
}
