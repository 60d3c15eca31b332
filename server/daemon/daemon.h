// The daemon: an engine, the sockets in front of it, and the life of the process around them.

#pragma once

#include "daemon/config.h"
#include "daemon/tined_exit.h"

// Runs until it is told to stop. What keeps it from starting is one line on standard error.
TinedExit daemon_run(const Config *config);

// Says on standard output what would be run, or on standard error why it would not. Touches
// nothing.
TinedExit daemon_check(const Config *config);
