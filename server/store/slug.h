// Slugs made of titles.

#pragma once

#include "store/store.h"

// The title in lower case, with one '-' for each run of ASCII characters that are no letters or
// digits, none at its ends; cut so that a suffix has room. "session" where nothing is left.
// "Fix the Thing!" gives "fix-the-thing". In the arena; ERROR_OUT_OF_MEMORY, ERROR_TOO_LONG.
MUST_USE Error slug_of_title(Arena *arena, const char *title, char **out);
