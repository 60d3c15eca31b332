// Names that differ from the default, found by a binary search.

#include "importers/pi/pi_aliases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "importers/pi/pi_entry.h"

void pi_aliases_free(PiAliases *aliases)
{
    for (size_t i = 0; i < aliases->count; i++)
        free(aliases->list[i].name);
    free(aliases->list);
    *aliases = (PiAliases){.list = NULL};
}

bool pi_is_external(const External *external)
{
    return external && strcmp(external->source, PI_SOURCE) == 0;
}

const char *pi_alias_default(const Message *message)
{
    return pi_is_external(message->external) ? message->external->id : message->id;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const PiAlias *)a)->id, ((const PiAlias *)b)->id);
}

const PiAlias *pi_aliases_find(const PiAliases *aliases, const char *id)
{
    PiAlias wanted;
    if (aliases->count == 0) return NULL;
    snprintf(wanted.id, sizeof(wanted.id), "%s", id);
    return bsearch(&wanted, aliases->list, aliases->count, sizeof(PiAlias), compare);
}

static Error add(PiAliases *aliases, const char *id, const char *name)
{
    if (aliases->count == aliases->capacity) {
        size_t capacity = aliases->capacity > 0 ? aliases->capacity * 2 : 64;
        PiAlias *list = realloc(aliases->list, capacity * sizeof(*list));
        if (!list) return ERROR_OUT_OF_MEMORY;
        aliases->list = list;
        aliases->capacity = capacity;
    }
    PiAlias alias = {.name = name ? strdup(name) : NULL};
    if (name && !alias.name) return ERROR_OUT_OF_MEMORY;
    snprintf(alias.id, sizeof(alias.id), "%s", id);
    size_t at = aliases->count++;
    for (; at > 0 && strcmp(aliases->list[at - 1].id, id) > 0; at--)
        aliases->list[at] = aliases->list[at - 1];
    aliases->list[at] = alias;
    return ERROR_NONE;
}

Error pi_aliases_note(PiAliases *aliases, const Message *message, const char *name)
{
    snprintf(aliases->last_id, sizeof(aliases->last_id), "%s", message->id);
    snprintf(aliases->last_name, sizeof(aliases->last_name), "%s", name);
    bool is_default = strcmp(name, pi_alias_default(message)) == 0;
    if (is_default && pi_is_external(message->external)) return ERROR_NONE;
    return add(aliases, message->id, is_default ? NULL : name);
}
