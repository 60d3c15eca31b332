// Messages as people read them.

#pragma once

#include "cli.h"

typedef struct MessageStyle {
    bool one_line; // id, role and the beginning of the text
    bool is_full;  // long results of tools, too
    bool has_ages; // "3m ago" instead of a time
} MessageStyle;

// Prints one entry on standard output, made safe for a terminal if that is one.
void message_print(const Cli *cli, const Message *message, const MessageStyle *style);

// "user", "assistant", … or the name of another role.
const char *message_role_name(const Message *message);

// "conversation", "compaction", …: names of kinds and roles, in the order of their enums from 1 on,
// NULL-terminated.
extern const char *const MESSAGE_KIND_NAMES[];
extern const char *const ROLE_NAMES[];
