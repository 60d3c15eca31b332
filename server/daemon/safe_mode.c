// Entering safe mode.

#include "daemon/safe_mode.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/log.h"

static const char LEAVE[] =
    "leave it with tined --no-safe, or with tine check if it finds no damage";

// Says why, from the newest note.
static void explain(const CrashNotes *crashes, char *out, size_t out_bytes)
{
    if (!crashes->is_loop) {
        snprintf(out, out_bytes, "--safe");
        return;
    }
    bool has_activity = crashes->activity[0] != '\0';
    snprintf(out, out_bytes, "two starts within a minute ended by a crash, the last one by %s%s%s",
             strsignal(crashes->signal), has_activity ? " in " : "", crashes->activity);
}

Error safe_mode_enter(const char *directory, const CrashNotes *crashes, ErrorDetail *detail,
                      SafeMode *out)
{
    char why[ERROR_DETAIL_BYTES_MAX / 4];
    explain(crashes, why, sizeof(why));
    out->is_on = true;
    snprintf(out->refusal, sizeof(out->refusal), "tined is in safe mode (%s); %s", why, LEAVE);
    log_write(LOG_WARNING, "safe mode: every session is read first, and nothing is written",
              "directory=\"%s\" reason=\"%s\"", directory, why);
    out->survey = malloc(sizeof(*out->survey));
    if (!out->survey) return error_say(detail, ERROR_OUT_OF_MEMORY, "no memory for safe mode");
    ErrorDetail cause = {{0}};
    Error error = survey_run(directory, &cause, out->survey);
    if (error == ERROR_UNAVAILABLE) return error_say(detail, error, "%s", cause.text);
    if (error) {
        const char *advice =
            error == ERROR_CORRUPT ? "tine restore-backup puts a backup in its place" : LEAVE;
        return error_say(detail, error, "%s; so not even safe mode (%s) can read it; %s",
                         cause.text, why, advice);
    }
    log_write(LOG_WARNING, "safe mode: the store was read",
              "sessions=%" PRIu64 " left_out=%zu advice=\"%s\"", out->survey->session_count,
              out->survey->left_out_count, LEAVE);
    return ERROR_NONE;
}

void safe_mode_free(SafeMode *safe)
{
    free(safe->survey);
    safe->survey = NULL;
}
