// Importing one session file of pi's.
//
// Its entries go to the store batch by batch, each after its parent, and beside each the bytes that
// it was made from. What the store has already, found by external ids (source "pi"), is left alone,
// so an import that was interrupted goes on, and one of a file that has grown adds what is new. The
// last entry's bytes go behind everything else: without them an import is not finished, and with
// them the next one leaves head, title and model alone.

#pragma once

#include "import.h"

// `import` counts what was done and says the project directory, if another than the file's is
// wanted. Returns an ExitCode; what is wrong with lines that are no entries is said and is no
// failure.
MUST_USE int pi_import(Import *import, FILE *file, const char *name);
