// What a fork inherited: the entries on the path to its fork point, and their labels.

#pragma once

#include "importers/pi/pi_export_run.h"

// Writes all of it, for branches that the fork has left hang below what its history does not show
// any more. Returns a status code.
MUST_USE int pi_inherited_write(PiExport *export);
