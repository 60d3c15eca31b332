// Prints messages for people.

#pragma once

#include "cli.h"

typedef struct MessageStyle {
    bool one_line; // ID, role and the beginning of the text
    bool is_full;  // long results of tools are not cut
    bool has_ages; // "3m ago" instead of a time
} MessageStyle;

// Prints one entry on standard output.
void message_print(const Cli *cli, const Message *message, const MessageStyle *style);

// Returns "user", "assistant", … or the name of another role.
const char *message_role_name(const Message *message);

// Names of kinds and roles, in the order of their enums from 1 on, then NULL.
extern const char *const MESSAGE_KIND_NAMES[];
extern const char *const ROLE_NAMES[];
