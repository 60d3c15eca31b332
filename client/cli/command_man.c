// tine __man: prints the manual page tine(1). It is made from the table of commands when tine is
// built, so it agrees with `--help`.

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "options.h"

// Escapes a text for roff: hyphens stay hyphens, and no line becomes a request.
static void put_text(FILE *page, const char *text)
{
    bool is_line_begin = true;
    for (; *text; text++) {
        if (is_line_begin && (*text == '.' || *text == '\'')) fputs("\\&", page);
        is_line_begin = *text == '\n';
        switch (*text) {
        case '-': fputs("\\-", page); break;
        case '\\': fputs("\\e", page); break;
        default: putc(*text, page);
        }
    }
}

static void put_line(FILE *page, const char *text)
{
    put_text(page, text);
    putc('\n', page);
}

static void put_options(FILE *page, const Option *options)
{
    for (; options && options->name; options++) {
        fprintf(page, ".TP\n");
        if (options->letter) fprintf(page, "\\fB\\-%c\\fR, ", options->letter);
        fprintf(page, "\\fB\\-\\-");
        put_text(page, options->name);
        fprintf(page, "\\fR");
        if (options->value_name) fprintf(page, " \\fI%s\\fR", options->value_name);
        putc('\n', page);
        put_line(page, options->help);
    }
}

// Lines that begin with a space are examples or lists; they are printed literally.
static void put_details(FILE *page, const char *details)
{
    bool is_literal = false;
    while (details && *details) {
        char line[512];
        size_t size = strcspn(details, "\n");
        snprintf(line, sizeof(line), "%.*s", (int)size, details);
        bool wants_literal = line[0] == ' ';
        if (wants_literal != is_literal) fprintf(page, wants_literal ? ".nf\n" : ".fi\n");
        is_literal = wants_literal;
        if (*line) put_line(page, line);
        details += size + (details[size] == '\n');
    }
    if (is_literal) fprintf(page, ".fi\n");
}

static void put_command(FILE *page, const Command *command)
{
    fprintf(page, ".SS \"");
    put_text(page, command->name);
    if (*command->arguments) {
        putc(' ', page);
        put_text(page, command->arguments);
    }
    fprintf(page, "\"\n");
    put_line(page, command->summary);
    if (command->details) fprintf(page, ".PP\n");
    put_details(page, command->details);
    put_options(page, command->options);
    fprintf(page, ".PP\n.nf\n.RS\n");
    for (size_t i = 0; command->examples[i]; i++)
        put_line(page, command->examples[i]);
    fprintf(page, ".RE\n.fi\n");
}

static void put_heading(FILE *page)
{
    fprintf(page,
            ".TH TINE 1 \"\" \"tine " TINE_VERSION "\" \"User Commands\"\n"
            ".SH NAME\ntine \\- stores the conversations of AI agents\n"
            ".SH SYNOPSIS\n.B tine\n.I COMMAND\n[\\fIOPTION\\fR…] [\\fIARGUMENT\\fR…]\n"
            ".SH DESCRIPTION\n"
            "tine reads and changes the sessions that\n.BR tined (8)\n"
            "keeps: conversations of AI agents with their forks, compactions, memories, todos and "
            "costs. It starts a tined if none runs.\n");
}

static void put_tail(FILE *page)
{
    fprintf(
        page,
        ".SH NAMING A SESSION\n"
        "A session is named by its ID, by the first 4 or more characters of the ID, or by its "
        "slug. @last is the most recently active one, @last~1 the one before. If several match, "
        "they are listed.\n"
        ".SH OUTPUT\n"
        "With \\fB\\-\\-json\\fR a command prints one document, or one line each for lists. Fields "
        "have the names of the contract (\\fBtine describe\\fR). On a terminal, text that people "
        "and models wrote cannot act: control characters are shown by name. Colour is used on a "
        "terminal only, and never with \\fBNO_COLOR\\fR.\n"
        ".SH EXIT STATUS\n"
        ".TP\n0\ndone\n.TP\n1\nit failed\n.TP\n2\nwrong usage\n.TP\n3\nnot found\n"
        ".TP\n4\ntined cannot be reached, or has the store open\n"
        ".SH ENVIRONMENT\n"
        ".TP\n.B TINE_SOCKET\nthe socket of tined\n"
        ".TP\n.B TINE_URL\nipc://PATH, tcp://127.0.0.1:PORT or embedded:DIRECTORY\n"
        ".TP\n.B TINE_TOKEN_FILE\nthe token of a tined on tcp://\n"
        ".TP\n.B TINE_DATA\ndirectory of the store, for commands that work on its files\n"
        ".TP\n.B NO_COLOR, PAGER\nas for other programs\n"
        ".SH FILES\n"
        ".TP\n.I $XDG_RUNTIME_DIR/tine/tine.sock\nwhere tined listens\n"
        ".TP\n.I $XDG_DATA_HOME/tine\nthe store; ~/.local/share/tine without the variable\n"
        ".TP\n.I $XDG_STATE_HOME/tine/tined.log\nthe log of a tined that tine started\n"
        ".SH SEE ALSO\n.BR tined (8)\n");
}

static int run(Cli *cli, int argument_count, char **arguments)
{
    (void)argument_count;
    (void)arguments;
    char *text = NULL;
    size_t size = 0;
    FILE *page = open_memstream(&text, &size);
    if (!page) return cli_say(EXIT_FAILED, "out of memory");
    put_heading(page);
    fprintf(page, ".SH COMMANDS\n");
    for (size_t i = 0; COMMANDS[i]; i++) {
        if (COMMANDS[i]->name[0] != '_') put_command(page, COMMANDS[i]);
    }
    fprintf(page, ".SH OPTIONS OF ALL COMMANDS\n");
    put_options(page, GLOBAL_OPTIONS);
    put_tail(page);
    int code = fclose(page) == 0 ? EXIT_OK : cli_say(EXIT_FAILED, "out of memory");
    if (!code) print_block(&cli->out, slice(text, size), "", 0);
    free(text);
    return code;
}

const Command command_man = {
    .name = "__man",
    .arguments = "",
    .summary = "prints the manual page tine(1)",
    .examples = {"tine __man | man -l -", "tine __man > tine.1"},
    .run = run,
};
