// The daemon: an engine, the sockets in front of it, and the life of the process around them.

#pragma once

#include "daemon/config.h"
#include "daemon/tined_exit.h"

// Runs until it is told to stop. If it cannot start, writes one line on standard error that says
// why.
TinedExit daemon_run(const Config *config);

// Writes the configuration that would be run on standard output, or on standard error why it would
// not run. Changes nothing.
TinedExit daemon_check(const Config *config);
