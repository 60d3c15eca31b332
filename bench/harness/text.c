// The texts of entries.

#include "text.h"

#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { SIZES_MAX = 16 };

static const char SAMPLE[] =
    "static int parse(const char *line, struct entry *out)\n"
    "{\n"
    "\tif (strncmp(line, \"entry:\", 6) != 0) return -1; // not ours\n"
    "\tout->name = strdup(line + 6);\n"
    "\treturn out->name ? 0 : -1;\n"
    "}\n"
    "src/entry.c: In function 'parse': warning: unused variable \"count\" at line 42 of 117;\n"
    "the tests pass, 31 of 31, and the function reads its input once, front to back.\n";

const char *text_of(size_t text_bytes)
{
    static struct {
        size_t text_bytes;
        char *text;
    } made[SIZES_MAX];
    static size_t count;
    for (size_t i = 0; i < count; i++) {
        if (made[i].text_bytes == text_bytes) return made[i].text;
    }
    require(count < SIZES_MAX, "more than %d sizes of texts", SIZES_MAX);
    char *text = malloc(text_bytes + 1);
    require(text != NULL, "out of memory");
    for (size_t i = 0; i < text_bytes; i++)
        text[i] = SAMPLE[i % (sizeof(SAMPLE) - 1)];
    text[text_bytes] = '\0';
    made[count].text_bytes = text_bytes;
    made[count++].text = text;
    return text;
}
