// The list of agents.

#include "importers/agents.h"

#include <stddef.h>

#include "importers/pi/pi_entry.h"

const char *const AGENT_SOURCES[] = {PI_SOURCE, NULL};
