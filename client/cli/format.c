// Formats numbers and times.

#include "format.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

Shown format_time(int64_t ms)
{
    Shown shown = {""};
    if (ms == 0) return shown;
    time_t seconds = (time_t)(ms / 1000);
    long rest = (long)(ms % 1000);
    if (rest < 0) {
        rest += 1000;
        seconds--;
    }
    struct tm parts;
    if (!gmtime_r(&seconds, &parts)) return shown;
    size_t size = strftime(shown.text, sizeof(shown.text), "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(shown.text + size, sizeof(shown.text) - size, ".%03ldZ", rest);
    return shown;
}

Shown format_age(int64_t ms, int64_t now_ms)
{
    static const struct {
        int64_t seconds;
        const char *name;
    } UNITS[] = {{365 * 86400, "y"}, {30 * 86400, "mo"}, {86400, "d"},
                 {3600, "h"},        {60, "m"},          {0, "s"}};
    Shown shown = {""};
    if (ms == 0) return shown;
    int64_t seconds = (now_ms - ms) / 1000;
    if (seconds < 0) seconds = 0; // the clocks of two hosts differ
    size_t unit = 0;
    while (seconds < UNITS[unit].seconds)
        unit++;
    int64_t size = UNITS[unit].seconds > 0 ? UNITS[unit].seconds : 1;
    snprintf(shown.text, sizeof(shown.text), "%lld%s", (long long)(seconds / size),
             UNITS[unit].name);
    return shown;
}

Shown format_usd(int64_t nano_usd)
{
    enum { NANO = 1000000000, DIGITS_KEPT = 2 };
    Shown shown;
    uint64_t size = nano_usd < 0 ? -(uint64_t)nano_usd : (uint64_t)nano_usd;
    int bytes = snprintf(shown.text, sizeof(shown.text), "%s%llu.%09llu", nano_usd < 0 ? "-" : "",
                         (unsigned long long)(size / NANO), (unsigned long long)(size % NANO));
    char *point = strchr(shown.text, '.');
    for (char *end = shown.text + bytes - 1; end > point + DIGITS_KEPT && *end == '0'; end--) {
        *end = '\0';
    }
    return shown;
}

Shown format_money(int64_t nano_usd)
{
    Shown shown;
    double usd = (double)nano_usd / 1e9;
    bool is_small = nano_usd != 0 && usd < 0.01 && usd > -0.01;
    snprintf(shown.text, sizeof(shown.text), is_small ? "$%.6f" : "$%.2f", usd);
    return shown;
}

Shown format_number(int64_t number)
{
    Shown shown;
    snprintf(shown.text, sizeof(shown.text), "%lld", (long long)number);
    return shown;
}

Shown format_count(int64_t count)
{
    static const char UNITS[] = "kMGTPE";
    Shown shown;
    double size = (double)count;
    int unit = -1;
    while ((size >= 1000 || size <= -1000) && UNITS[unit + 1]) {
        size /= 1000;
        unit++;
    }
    if (unit < 0) return format_number(count);
    snprintf(shown.text, sizeof(shown.text), "%.1f%c", size, UNITS[unit]);
    return shown;
}

Shown format_bytes(uint64_t bytes)
{
    static const char *const UNITS[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    Shown shown;
    double size = (double)bytes;
    size_t unit = 0;
    for (; size >= 1024; unit++)
        size /= 1024;
    snprintf(shown.text, sizeof(shown.text), unit ? "%.1f %s" : "%.0f %s", size, UNITS[unit]);
    return shown;
}

Shown format_duration(int64_t us)
{
    Shown shown;
    if (us < 1000) {
        snprintf(shown.text, sizeof(shown.text), "%lld us", (long long)us);
    } else if (us < 1000 * 1000) {
        snprintf(shown.text, sizeof(shown.text), "%.1f ms", (double)us / 1e3);
    } else {
        snprintf(shown.text, sizeof(shown.text), "%.1f s", (double)us / 1e6);
    }
    return shown;
}
