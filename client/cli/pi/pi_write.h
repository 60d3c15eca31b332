// Entries as pi writes them: one line of JSON, its members in pi's order.

#pragma once

#include <stdio.h>

#include "base/error.h"
#include "names.h"

// What pi calls this entry and those that it names; "": none.
typedef struct PiNames {
    const char *id, *parent_id, *target_id, *first_kept_id;
} PiNames;

// ERROR_OUT_OF_MEMORY. What the file could not take is for ferror to say.
MUST_USE Error pi_write_entry(FILE *out, const Message *message, const PiNames *names);

// A header for a session that has none of pi's.
void pi_write_header(FILE *out, const Session *session);
