// Memory: these functions return memory or end the program, because a short-lived tool need not
// recover.

#pragma once

#include <stddef.h>

// Resizes the owned array `items`, which may be NULL, to `count` items. Returns its new place.
void *memory_resize(void *items, size_t count, size_t item_bytes);

// Formats a new string, which the caller frees.
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
