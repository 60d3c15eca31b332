// Reading and writing ISO 8601 times.

#include "importers/iso_time.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/limits.h"
#include "text/json_walk.h"

enum { TEXT_BYTES_MAX = 64 };

static int64_t days_since_epoch(int64_t year, int64_t month, int64_t day)
{
    // Years that begin in March end with their leap day. See Howard Hinnant, "chrono-compatible
    // low-level date algorithms".
    if (month <= 2) year--;
    int64_t era = year / 400, of_era = year % 400;
    int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719468;
}

// A time as JavaScript writes it, "2025-11-20T10:00:00.000Z", in its quotes. Nearly all are of this
// form, and sscanf takes longer for one than for all other numbers of an entry together.
static bool read_usual_time(Slice value, int64_t *out_ms)
{
    static const char PATTERN[] = "\"dddd-dd-ddTdd:dd:dd.dddZ\"";
    enum { SIZE = sizeof(PATTERN) - 1 };
    if (value.size != SIZE) return false;
    int64_t numbers[7] = {0}; // year, month, day, hour, minute, second, millisecond
    size_t at = 0;
    for (size_t i = 1; i < SIZE - 1; i++) {
        uint8_t byte = value.bytes[i];
        if (PATTERN[i] == 'd') {
            if (byte < '0' || byte > '9') return false;
            numbers[at] = 10 * numbers[at] + (byte - '0');
        } else {
            if (byte != PATTERN[i]) return false;
            at++;
        }
    }
    bool is_date = numbers[1] >= 1 && numbers[1] <= 12 && numbers[2] >= 1 && numbers[2] <= 31;
    if (!is_date || numbers[3] > 23 || numbers[4] > 59 || numbers[5] > 59) return false;
    int64_t days = days_since_epoch(numbers[0], numbers[1], numbers[2]);
    int64_t seconds = ((days * 24 + numbers[3]) * 60 + numbers[4]) * 60 + numbers[5];
    *out_ms = seconds * 1000 + numbers[6];
    return true;
}

int64_t iso_time_ms(Slice value)
{
    char text[TEXT_BYTES_MAX], zone[8] = "", sign;
    int64_t usual_ms;
    if (read_usual_time(value, &usual_ms)) return usual_ms > 0 ? usual_ms : 0;
    if (!json_is_text(value) || value.size >= sizeof(text)) return 0;
    memcpy(text, value.bytes + 1, value.size - 2);
    text[value.size - 2] = '\0';
    struct tm parts = {.tm_mday = 1};
    double seconds = 0;
    int hours = 0, minutes = 0;
    int read = sscanf(text, "%4d-%2d-%2dT%2d:%2d:%lf%7s", &parts.tm_year, &parts.tm_mon,
                      &parts.tm_mday, &parts.tm_hour, &parts.tm_min, &seconds, zone);
    if (read < 6 || parts.tm_mon < 1 || parts.tm_mon > 12 || parts.tm_mday < 1 ||
        parts.tm_mday > 31 || parts.tm_hour < 0 || parts.tm_hour > 24 || parts.tm_min < 0 ||
        parts.tm_min > 59 || !(seconds >= 0 && seconds < 61))
        return 0;
    parts.tm_year -= 1900;
    parts.tm_mon -= 1;
    int64_t offset = 0;
    if (zone[0] == '+' || zone[0] == '-') {
        if (sscanf(zone, "%c%2d:%2d", &sign, &hours, &minutes) != 3) return 0;
        offset = (sign == '-' ? -60 : 60) * (60 * hours + minutes);
    }
    int64_t time_ms = ((int64_t)timegm(&parts) - offset) * 1000 + json_round(seconds * 1000);
    return time_ms > 0 && time_ms <= TIME_MS_MAX ? time_ms : 0;
}

void iso_time_write(int64_t time_ms, char out[ISO_TIME_BYTES])
{
    time_t seconds = time_ms / 1000;
    struct tm parts;
    char text[ISO_TIME_BYTES];
    gmtime_r(&seconds, &parts);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(out, ISO_TIME_BYTES, "%.20s.%03dZ", text, (int)(time_ms % 1000));
}
