// Adding the entries of a file to its session: those that the store does not have yet.

#pragma once

#include "importers/pi/pi_run.h"

// The session must be known (pi_session.h) and the sender open. Adds the missing entries, and the
// missing originals of those that are there, except for the last entry's. Returns a status code;
// what failed is reported.
MUST_USE int pi_add_all(PiRun *run);
