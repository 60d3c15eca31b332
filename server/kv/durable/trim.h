// Gives the memory of the map back to the kernel.

#pragma once

#include "kv/durable/options.h"

// Takes the file's pages out of this process's memory. They come back as they are read. Other
// threads may read at the same time.
void trim_map(DataFile *file);
