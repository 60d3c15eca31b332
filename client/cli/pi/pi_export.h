// Exporting a session as a file of pi's.
//
// What was imported from one comes back byte for byte: the header, and each entry's original with
// what stood behind it. What was appended since, and all of a session that pi never saw, is written
// as pi 3 writes it: a line per entry, in the log's order, with ids of ours where there are no
// others. A fork's file has all that the fork inherited, with its lines, for a file of pi's stands
// for itself. A deleted or purged entry is written as a note without content, for others hang below
// it. Progress is shown on standard error, unless the file itself goes to a terminal.
//
// pi keeps no leaf: it goes on from a file's last entry, whatever the session's head is.

#pragma once

#include "cli.h"

// `session` is an id of ours. Returns an ExitCode.
MUST_USE int pi_export(Cli *cli, FILE *out, char *session);
