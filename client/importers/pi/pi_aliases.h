// What the file calls the entries of the store: by pi's ID if they have one, else by the store's,
// unless a line gives an entry another ID.

#pragma once

#include "importers/importer.h"

enum { PI_ALIAS_BYTES = 512 };

typedef struct PiAlias {
    char id[STORE_ID_BYTES];
    char *name; // owned; NULL: the store's ID, which no other line of the file knows
} PiAlias;

// Begins zeroed.
typedef struct PiAliases {
    PiAlias *list; // in the order of the IDs; owned
    size_t count, capacity;

    // The entry that was noted last, whose child usually comes next.
    char last_id[STORE_ID_BYTES], last_name[PI_ALIAS_BYTES];
} PiAliases;

void pi_aliases_free(PiAliases *aliases);

// Returns whether an external ID is pi's, and what the store calls an entry in a file of pi.
bool pi_is_external(const External *external);
const char *pi_alias_default(const Message *message);

// Notes that the file calls `message` by `name`. Fast if messages are noted in the order of their
// IDs. ERROR_OUT_OF_MEMORY.
MUST_USE Error pi_aliases_note(PiAliases *aliases, const Message *message, const char *name);

// Returns the alias of an entry, if it was noted with a name that is not its default; else NULL.
const PiAlias *pi_aliases_find(const PiAliases *aliases, const char *id);
