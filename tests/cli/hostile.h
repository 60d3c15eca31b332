// Fills a store in which every string that a client can set is hostile to a terminal.

#pragma once

#include "tine.h"

// The strings contain a window title and a clipboard write (OSC), a cleared screen, C1 controls,
// direction marks, invisible characters, tags, and a line that looks like one of ours.
#define HOSTILE                                                                                    \
    "h\033]0;title\007\033]52;c;aGk=\007\033[2J\033[31m\xc2\x9b"                                   \
    "31m\xc2\x85\u202e\u2066\u200b\xc2\xad\U000e0041\ufeff\177\b\rcarriage\nFORGED"

// The slug of two sessions.
#define HOSTILE_TWICE "hostile-twice"

// Creates sessions, entries of every kind with parts of every kind, calls, memories, tasks and
// events. Strings are found by the descriptors of the contract, so new fields are included. The
// most recently active session has all of these.
void hostile_store_fill(Tine *tine);
