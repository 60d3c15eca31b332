// Formats numbers and times for people and for programs.

#pragma once

#include <stddef.h>
#include <stdint.h>

// Holds any of these texts.
typedef struct Shown {
    char text[48];
} Shown;

Shown format_time(int64_t ms);                // "2026-11-18T15:11:24.039Z"; "" for 0
Shown format_age(int64_t ms, int64_t now_ms); // "3m", at most 4 characters; "" for 0
Shown format_usd(int64_t nano_usd);           // "0.0123", exact
Shown format_money(int64_t nano_usd);         // "$0.01", rounded
Shown format_count(int64_t count);            // "12.3k"
Shown format_bytes(uint64_t bytes);           // "1.5 GiB"
Shown format_number(int64_t number);
Shown format_duration(int64_t us); // "412 us", "3.1 ms", "1.2 s"
