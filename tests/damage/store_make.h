// The store that is damaged: about 9 MB of everything that a store can hold, with free pages.

#pragma once

#include <stdint.h>

// Makes it in `directory`, through the public API. The same seed makes the same texts.
void store_make(const char *directory, uint64_t seed);
