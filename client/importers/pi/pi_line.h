// Writing one entry to the file: its line as it was, its line with other IDs, or a new line.

#pragma once

#include "importers/pi/pi_export_run.h"

// Each returns a status code.

// Writes an entry. `original` may be NULL.
MUST_USE int pi_line_write(PiExport *export, const Message *message, const Original *original);

// Writes an entry that the log has elsewhere as a child of the entry that the file calls `parent`.
MUST_USE int pi_line_write_below(PiExport *export, const Message *message, const char *parent);

// Writes the header.
MUST_USE int pi_line_write_header(PiExport *export);

// Ends the line that was written last.
void pi_line_end(PiExport *export);
