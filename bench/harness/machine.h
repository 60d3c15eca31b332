// What the figures were seen on.

#pragma once

#include <stdio.h>

// The members "machine", "date" and "commit" of results.json, each with its comma. The file system
// is that of the working directory.
void machine_write(FILE *file);
