// Scripts that complete command lines. `tine __complete` (command_complete.c) answers them.

#pragma once

// Returns the script for bash, zsh or fish; NULL for another shell.
const char *completion_script(const char *shell);
