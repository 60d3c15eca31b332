// The texts of entries: like a tool's output, in words and lines, with what JSON must escape.

#pragma once

#include <stddef.h>

// `text_bytes` of it, the same for every system; lives as long as the program. The texts of two
// sizes begin alike.
const char *text_of(size_t text_bytes);
