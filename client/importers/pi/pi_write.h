// Writes entries as pi does: one line of JSON each, with the members in pi's order.

#pragma once

#include <stdio.h>

#include "base/error.h"
#include "base/slice.h"
#include "names.h"

// What the file calls an entry and those that it names; "": none.
typedef struct PiNames {
    const char *id, *parent_id, *target_id, *first_kept_id;
} PiNames;

// Writes a new line with its end. The caller checks ferror. ERROR_OUT_OF_MEMORY.
MUST_USE Error pi_write_entry(FILE *out, const Message *message, const PiNames *names);

// Writes the line of an entry again with other IDs, without its end. Everything else stays. A line
// of version 1 or 2 becomes the one that version 3 has in its place.
void pi_write_again(FILE *out, Slice line, const PiNames *names, unsigned version);

// Writes a text as a JSON string, escaped as JSON.stringify does.
void pi_write_text(FILE *out, const char *text);
