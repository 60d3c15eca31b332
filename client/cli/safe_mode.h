// Safe mode: tined serves only what can be read of a store (tined --safe). Describe tells it among
// its limits.

#pragma once

#include "cli.h"

typedef struct SafeModeState {
    bool is_on;
    uint64_t left_out; // sessions that cannot be read; listings are without them
} SafeModeState;

// Asks tined. Returns zeros if it does not answer.
SafeModeState safe_mode_ask(Cli *cli);

// For a command that has read a listing: if sessions were left out, says so on standard error and
// returns EXIT_FAILED.
MUST_USE int safe_mode_warn(Cli *cli);
