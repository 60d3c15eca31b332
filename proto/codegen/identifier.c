// Identifiers. A dot becomes two underscores. A capital begins a new word unless it follows a
// capital: "HTTPServer" is one word, "SessionId" is two.

#include "identifier.h"
#include "memory.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static char *words(const char *name, int (*convert)(int));

char *identifier_type(const char *name)
{
    char *result = memory_resize(NULL, 2 * strlen(name) + 1, 1);
    char *end = result;
    bool capital = true;
    for (const char *c = name; *c; c++) {
        if (*c == '.') {
            *end++ = '_';
            *end++ = '_';
            capital = true;
        } else if (*c == '_') {
            capital = true;
        } else {
            *end++ = capital ? (char)toupper((unsigned char)*c) : *c;
            capital = false;
        }
    }
    *end = '\0';
    return result;
}

char *identifier_lower(const char *name)
{
    return words(name, tolower);
}

char *identifier_upper(const char *name)
{
    return words(name, toupper);
}

static char *words(const char *name, int (*convert)(int))
{
    char *result = memory_resize(NULL, 2 * strlen(name) + 1, 1);
    char *end = result;
    bool was_capital = true; // no underscore before the first word
    for (const char *c = name; *c; c++) {
        if (*c == '.') {
            *end++ = '_';
            *end++ = '_';
            was_capital = true;
            continue;
        }
        bool is_capital = isupper((unsigned char)*c) != 0;
        if (is_capital && !was_capital) *end++ = '_';
        *end++ = (char)convert((unsigned char)*c);
        was_capital = is_capital;
    }
    *end = '\0';
    return result;
}
