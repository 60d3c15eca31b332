// Slugs: makes a slug from a title.

#pragma once

#include "store/store.h"

// Converts the title to lower case and replaces each run of ASCII characters that are not letters
// or digits by one '-', but not at either end. Cuts the result so that a suffix fits. If nothing is
// left, the slug is "session". Example: "Fix the Thing!" gives "fix-the-thing". `*out` is in the
// arena. ERROR_OUT_OF_MEMORY, ERROR_TOO_LONG.
MUST_USE Error slug_of_title(Arena *arena, const char *title, char **out);
