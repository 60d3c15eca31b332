// The list of commands.

#include "command.h"

#include <string.h>

#include "nearest.h"

extern const Command command_help;
extern const Command command_ping;
extern const Command command_version;

const Command *const COMMANDS[] = {
    &command_ping,
    &command_version,
    &command_help,
    NULL,
};

const Command *command_find(const char *name)
{
    for (size_t i = 0; COMMANDS[i]; i++) {
        if (strcmp(COMMANDS[i]->name, name) == 0) return COMMANDS[i];
    }
    return NULL;
}

const char *command_nearest(const char *name)
{
    Nearest nearest = nearest_begin(name);
    for (size_t i = 0; COMMANDS[i]; i++) nearest_consider(&nearest, COMMANDS[i]->name);
    return nearest.name;
}
