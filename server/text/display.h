// Code points on a terminal: which of them must not reach it, and how many columns the others take.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Returns whether a code point acts or hides where it is printed: controls, line and paragraph
// separators, marks that change the direction of text, characters that cannot be seen (except the
// joiner and the variation selectors that emoji need), private use, and noncharacters. Write such a
// code point as an escape or by name. This is the only list of them.
bool display_is_unsafe(uint32_t code_point);

// Returns the columns that a code point takes: 0, 1 or 2. Depends on the LC_CTYPE of the process; 0
// for a code point that it does not know.
size_t display_columns(uint32_t code_point);
