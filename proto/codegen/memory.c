// Memory: every failed allocation ends the program with a message.

#include "memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void *present(void *memory);

void *memory_resize(void *items, size_t count, size_t item_bytes)
{
    return present(reallocarray(items, count, item_bytes));
}

char *text_format(const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    return present(length < 0 ? NULL : text);
}

static void *present(void *memory)
{
    if (memory) return memory;
    fputs("tine-codegen: out of memory\n", stderr);
    exit(EXIT_FAILURE);
}
