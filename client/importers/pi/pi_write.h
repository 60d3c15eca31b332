// Entries as pi writes them: one line of JSON, its members in pi's order.

#pragma once

#include <stdio.h>

#include "base/error.h"
#include "base/slice.h"
#include "names.h"

// What pi calls this entry and those that it names; "": none.
typedef struct PiNames {
    const char *id, *parent_id, *target_id, *first_kept_id;
} PiNames;

// A line with its end. ERROR_OUT_OF_MEMORY. What the file could not take is for ferror to say.
MUST_USE Error pi_write_entry(FILE *out, const Message *message, const PiNames *names);

// The line of an entry once more, below another parent or under another id: all of it stays but
// these. One of an older version of pi's files becomes what pi 3 has in its place.
void pi_write_again(FILE *out, Slice line, const PiNames *names, unsigned version);

// A text as a JSON string, escaped as JSON.stringify does it.
void pi_write_text(FILE *out, const char *text);
