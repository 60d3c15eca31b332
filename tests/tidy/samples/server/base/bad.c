// A sample for tests/tidy/style: every rule that one file can break. "ä" is one column.

#include "base/error.h"

// strcpy( in a comment is no call, and neither is sprintf("gets(") in a string.
static const char TEXT[] = "strcpy(a, \"b\"); goto end;";

/* Nor is
   strcat(a, b); in a long comment. */
static void copy(char *to, const char *from)
{
    strcpy(to, from);
    my_strcpy(to, from);
    snprintf(to, 1, "%s", from); // TODO: say how long
    if (*to) goto end; // '"' strcat(
    sprintf (to, "'");
end:
    ääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääää
    äääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääää
}
