// The list of commands.

#include "command.h"

#include <string.h>

#include "nearest.h"

extern const Command command_new;
extern const Command command_ls;
extern const Command command_show;
extern const Command command_log;
extern const Command command_append;
extern const Command command_fork;
extern const Command command_rewind;
extern const Command command_clear;
extern const Command command_compact;
extern const Command command_rename;
extern const Command command_rm;
extern const Command command_restore;
extern const Command command_purge;
extern const Command command_memory;
extern const Command command_todo;
extern const Command command_cost;
extern const Command command_tree;
extern const Command command_watch;
extern const Command command_top;
extern const Command command_call;
extern const Command command_describe;
extern const Command command_stats;
extern const Command command_sync;
extern const Command command_metrics;
extern const Command command_check;
extern const Command command_backup;
extern const Command command_restore_backup;
extern const Command command_compact_db;
extern const Command command_ping;
extern const Command command_version;
extern const Command command_export;
extern const Command command_import;
extern const Command command_completion;
extern const Command command_help;
extern const Command command_complete;
extern const Command command_man;

const Command *const COMMANDS[] = {
    &command_new,
    &command_ls,
    &command_show,
    &command_log,
    &command_append,
    &command_fork,
    &command_rewind,
    &command_clear,
    &command_compact,
    &command_rename,
    &command_rm,
    &command_restore,
    &command_purge,
    &command_memory,
    &command_todo,
    &command_cost,
    &command_tree,
    &command_watch,
    &command_top,
    &command_export,
    &command_import,
    &command_call,
    &command_describe,
    &command_stats,
    &command_sync,
    &command_metrics,
    &command_check,
    &command_backup,
    &command_restore_backup,
    &command_compact_db,
    &command_ping,
    &command_version,
    &command_completion,
    &command_help,
    &command_complete,
    &command_man,
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
    for (size_t i = 0; COMMANDS[i]; i++) {
        if (COMMANDS[i]->name[0] != '_') nearest_consider(&nearest, COMMANDS[i]->name);
    }
    return nearest.name;
}
