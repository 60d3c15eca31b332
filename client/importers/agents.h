// The agents whose files can be imported.

#pragma once

// The sources of the external IDs that importers give to sessions, ended by NULL.
extern const char *const AGENT_SOURCES[];
