// Completion of command lines: the scripts for shells. What they ask for is answered by
// `tine __complete` (command_complete.c).

#pragma once

// For bash, zsh or fish; NULL for another one.
const char *completion_script(const char *shell);
