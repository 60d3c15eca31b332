// The session that a file becomes: found or made before its entries, updated after them.

#pragma once

#include "importers/pi/pi_run.h"

// Each returns a status code; what failed is reported.

// Finds the session by the file's ID, or makes it. Notes what the store has of the file.
MUST_USE int pi_session_find_or_make(PiRun *run);

// Moves the head to the file's last entry, which must be stored.
MUST_USE int pi_session_move_head(PiRun *run);

// Updates model and header.
MUST_USE int pi_session_update(PiRun *run);
