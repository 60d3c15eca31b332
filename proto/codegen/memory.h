// Memory that is there or ends the program: a short-lived tool need not recover.

#pragma once

#include <stddef.h>

// The owned array `items` (NULL at first) moved to where it has room for `count` items.
void *memory_resize(void *items, size_t count, size_t item_bytes);

// printf into a new string, which the caller owns.
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
