// Reads arguments and standard input.

#include "input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "options.h"

static int read_file(FILE *file, const char *name, char **out)
{
    size_t size = 0, capacity = 4096;
    char *text = malloc(capacity + 1);
    while (text) {
        size += fread(text + size, 1, capacity - size, file);
        if (size < capacity || size > REQUEST_BYTES_MAX) break;
        capacity *= 2;
        char *larger = realloc(text, capacity + 1);
        if (!larger) free(text);
        text = larger;
    }
    if (!text) return cli_say(EXIT_FAILED, "out of memory");
    text[size] = '\0';
    *out = text;
    if (ferror(file)) return cli_say(EXIT_FAILED, "cannot read %s: %s", name, strerror(errno));
    if (size > REQUEST_BYTES_MAX) {
        return cli_say(EXIT_FAILED, "%s is larger than the %d MiB that a message can have", name,
                       REQUEST_BYTES_MAX / 1024 / 1024);
    }
    if (strlen(text) != size) {
        return cli_say(EXIT_FAILED, "%s contains a NUL byte; a message is text", name);
    }
    return EXIT_OK;
}

static int copy(const char *text, char **out)
{
    *out = strdup(text);
    return *out ? EXIT_OK : cli_say(EXIT_FAILED, "out of memory");
}

static int read_standard_input(const Cli *cli, char **out)
{
    (void)cli;
    if (isatty(STDIN_FILENO) && isatty(STDERR_FILENO)) {
        cli_note("Type the text, then Ctrl-D on an empty line.\n");
    }
    *out = NULL;
    int code = read_file(stdin, "standard input", out);
    if (code) {
        text_freep(out);
        return code;
    }
    // The line feed that echo and editors add does not belong to the message.
    size_t size = strlen(*out);
    if (size > 0 && (*out)[size - 1] == '\n') (*out)[size - 1] = '\0';
    return EXIT_OK;
}

int input_read(const Cli *cli, const char *argument, char **out)
{
    if (argument && strcmp(argument, "-") != 0) return copy(argument, out);
    return read_standard_input(cli, out);
}

int input_read_json(const Cli *cli, const char *argument, char **out)
{
    if (argument[0] != '@') return input_read(cli, argument, out);
    FILE *file = fopen(argument + 1, "re");
    if (!file) {
        return cli_say(EXIT_FAILED, "cannot read %s: %s", argument + 1, strerror(errno));
    }
    *out = NULL;
    int code = read_file(file, argument + 1, out);
    fclose(file);
    if (code) text_freep(out);
    return code;
}

int option_slug_policy(const Cli *cli, SlugPolicy *out)
{
    bool is_unique = option_is_given(cli, "unique"), has_suffix = option_is_given(cli, "suffix");
    if (is_unique && has_suffix) return cli_usage(cli, "use --unique or --suffix, not both");
    *out = is_unique    ? SLUG_POLICY_UNIQUE
           : has_suffix ? SLUG_POLICY_UNIQUE_SUFFIX
                        : SLUG_POLICY_FREE;
    return EXIT_OK;
}

int input_confirm(const Cli *cli, const char *question)
{
    if (option_is_given(cli, "yes")) return EXIT_OK;
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
        return cli_usage(cli, "there is no terminal to ask at; use --yes");
    }
    char answer[16] = "";
    cli_note("%s Type yes: ", question);
    if (fgets(answer, sizeof(answer), stdin) && strcmp(answer, "yes\n") == 0) return EXIT_OK;
    return cli_say(EXIT_FAILED, "nothing was done");
}

void text_freep(char **text)
{
    free(*text);
    *text = NULL;
}
