// Reads the command line. Options are looked up in the table of the command first, then in the
// global one. The first argument that is not an option names the command.

#include "options.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nearest.h"

const Option GLOBAL_OPTIONS[] = {
    {"socket", 0, "PATH", "socket of tined (default: $TINE_SOCKET, or that of tined)"},
    {"url", 0, "URL", "ipc://PATH, tcp://127.0.0.1:PORT or embedded:DIRECTORY; $TINE_URL"},
    {"token-file", 0, "FILE", "token of a tined on tcp:// (default: $TINE_TOKEN_FILE)"},
    {"json", 0, NULL, "print JSON: one document, or one line each for lists"},
    {"timeout", 0, "MS", "give up on a call after MS milliseconds (default: 30000)"},
    {"no-start", 0, NULL, "do not start a tined if none runs"},
    {"no-pager", 0, NULL, "do not use a pager"},
    {"color", 0, "WHEN", "auto, always or never; $NO_COLOR means never"},
    {"help", 'h', NULL, "print help"},
    {"version", 0, NULL, "print the version"},
    {NULL, 0, NULL, NULL},
};

typedef struct Reader {
    Cli *cli;
    char **arguments;
    int count, next; // `next` is the index of the next one
    int kept;        // arguments that are not options, moved to the front
} Reader;

static const Option *find_in(const Option *options, const char *name, size_t size, char letter)
{
    for (; options && options->name; options++) {
        if (letter ? options->letter == letter
                   : strlen(options->name) == size && memcmp(options->name, name, size) == 0) {
            return options;
        }
    }
    return NULL;
}

static const Option *find(const Cli *cli, const char *name, size_t size, char letter)
{
    const Option *own = cli->command ? cli->command->options : NULL;
    const Option *option = find_in(own, name, size, letter);
    return option ? option : find_in(GLOBAL_OPTIONS, name, size, letter);
}

static int no_such_option(const Cli *cli, const char *argument)
{
    char name[64];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(argument + 1, "="), argument + 1);
    Nearest nearest = nearest_begin(name[0] == '-' ? name + 1 : name);
    const Option *own = cli->command ? cli->command->options : NULL;
    for (; own && own->name; own++)
        nearest_consider(&nearest, own->name);
    for (own = GLOBAL_OPTIONS; own->name; own++)
        nearest_consider(&nearest, own->name);
    if (nearest.name && name[0] == '-') {
        return cli_usage(cli, "there is no option '-%s'; did you mean --%s?", name, nearest.name);
    }
    return cli_usage(cli, "there is no option '-%s'", name);
}

static int give(Cli *cli, const Option *option, const char *value)
{
    if (cli->given_count == CLI_OPTIONS_MAX) {
        return cli_usage(cli, "there are more than %d options", CLI_OPTIONS_MAX);
    }
    cli->given[cli->given_count++] = (GivenOption){option, value};
    return EXIT_OK;
}

static int read_long(Reader *reader)
{
    const char *argument = reader->arguments[reader->next++], *name = argument + 2;
    size_t size = strcspn(name, "=");
    const Option *option = find(reader->cli, name, size, 0);
    const char *value = name[size] ? name + size + 1 : NULL;
    if (!option) return no_such_option(reader->cli, argument);
    if (!option->value_name) {
        if (value) return cli_usage(reader->cli, "--%s takes no value", option->name);
        return give(reader->cli, option, NULL);
    }
    if (!value && reader->next < reader->count) value = reader->arguments[reader->next++];
    if (!value) {
        return cli_usage(reader->cli, "--%s needs a value: %s", option->name, option->value_name);
    }
    return give(reader->cli, option, value);
}

// Reads "-n5", "-n 5", and flags together: "-rf".
static int read_letters(Reader *reader)
{
    const char *argument = reader->arguments[reader->next++];
    for (const char *letter = argument + 1; *letter; letter++) {
        const Option *option = find(reader->cli, NULL, 0, *letter);
        if (!option) return no_such_option(reader->cli, argument);
        int code;
        if (!option->value_name) {
            code = give(reader->cli, option, NULL);
            if (code) return code;
            continue;
        }
        const char *value = letter[1] ? letter + 1 : NULL;
        if (!value && reader->next < reader->count) value = reader->arguments[reader->next++];
        if (!value) {
            return cli_usage(reader->cli, "-%c needs a value: %s", *letter, option->value_name);
        }
        return give(reader->cli, option, value);
    }
    return EXIT_OK;
}

static int read_command(Cli *cli, const char *name)
{
    cli->command = command_find(name);
    if (cli->command) return EXIT_OK;
    const char *nearest = command_nearest(name);
    if (nearest) {
        return cli_usage(cli, "there is no command '%s'; did you mean %s?", name, nearest);
    }
    return cli_usage(cli, "there is no command '%s'", name);
}

int options_read(Cli *cli, int argument_count, char **arguments, int *out_count,
                 char ***out_arguments)
{
    Reader reader = {.cli = cli, .arguments = arguments, .count = argument_count, .next = 1};
    bool only_arguments = false;
    while (reader.next < reader.count) {
        char *argument = arguments[reader.next];
        int code = EXIT_OK;
        if (only_arguments || argument[0] != '-' || !argument[1]) {
            reader.next++;
            if (cli->command) {
                arguments[reader.kept++] = argument;
            } else {
                code = read_command(cli, argument);
            }
        } else if (strcmp(argument, "--") == 0) {
            only_arguments = true;
            reader.next++;
        } else {
            code = argument[1] == '-' ? read_long(&reader) : read_letters(&reader);
        }
        if (code) return code;
    }
    arguments[reader.kept] = NULL;
    *out_count = reader.kept;
    *out_arguments = arguments;
    return EXIT_OK;
}

static const Option *option_named(const Cli *cli, const char *name)
{
    const Option *option = find(cli, name, strlen(name), 0);
    assert(option); // a command may ask only for its own options
    return option;
}

const char *option_text(const Cli *cli, const char *name)
{
    const Option *option = option_named(cli, name);
    for (size_t i = cli->given_count; i > 0; i--) {
        if (cli->given[i - 1].option == option) return cli->given[i - 1].value;
    }
    return NULL;
}

bool option_is_given(const Cli *cli, const char *name)
{
    const Option *option = option_named(cli, name);
    for (size_t i = 0; i < cli->given_count; i++) {
        if (cli->given[i].option == option) return true;
    }
    return false;
}

const char *option_text_at(const Cli *cli, const char *name, size_t index)
{
    const Option *option = option_named(cli, name);
    for (size_t i = 0; i < cli->given_count; i++) {
        if (cli->given[i].option == option && index-- == 0) return cli->given[i].value;
    }
    return NULL;
}

int option_number(const Cli *cli, const char *name, int64_t min, int64_t max, int64_t *in_out)
{
    const char *text = option_text(cli, name);
    if (!text) return EXIT_OK;
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno || end == text || *end || number < min || number > max) {
        return cli_usage(cli, "--%s: '%s' is not a number from %lld to %lld", name, text,
                         (long long)min, (long long)max);
    }
    *in_out = number;
    return EXIT_OK;
}

int option_choice(const Cli *cli, const char *name, const char *const *names, int *in_out)
{
    const char *text = option_text(cli, name);
    if (!text) return EXIT_OK;
    char all[256] = "";
    for (int i = 0; names[i]; i++) {
        if (strcmp(names[i], text) == 0) {
            *in_out = i;
            return EXIT_OK;
        }
        size_t used = strlen(all);
        snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "", names[i]);
    }
    return cli_usage(cli, "--%s: '%s' is not one of: %s", name, text, all);
}
