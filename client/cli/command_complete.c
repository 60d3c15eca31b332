// tine __complete: prints possible completions of a command line for the scripts of the shells, one
// a line, with a description behind a tab. ":files" tells the shell to complete file names.
//
// The table of commands says what can stand at a place, by the names of arguments and of option
// values.

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli.h"
#include "connect.h"
#include "find.h"
#include "message_print.h"
#include "options.h"
#include "text/display.h"
#include "text/utf8.h"
#include "tine/v1/store.pb-c.h"

enum { ANSWER_SESSIONS = 200, ANSWER_MESSAGES = 100, MEANING_COLUMNS = 60, TIMEOUT_MS = 1500 };

typedef struct Line {
    Cli *cli;
    const Command *command; // NULL: none yet
    const char *current;    // the word to complete
    const char *value_of;   // the option value that the word is ("DIR"); NULL: none
    char **positional;      // earlier words that are not options or their values, …
    int positional_count;   // … without the command
    bool only_arguments;    // after "--"
} Line;

static void read_line(Line *line, int count, char **words);
static void answer_options(const Line *line);
static void answer_argument(const Line *line, const char *name);
static void answer_commands(const Line *line);
static void argument_name(const Line *line, char *out, size_t out_bytes);

static int run(Cli *cli, int argument_count, char **arguments)
{
    static char nothing[] = "";
    static char *no_words[] = {nothing, NULL};
    char name[64];
    Line line = {.cli = cli};
    cli->may_start = false;
    cli->call.timeout_ms = TIMEOUT_MS;
    cli->call.no_retry = true;
    if (argument_count == 0) {
        argument_count = 1;
        arguments = no_words;
    }
    read_line(&line, argument_count, arguments);
    if (line.value_of) {
        answer_argument(&line, line.value_of);
    } else if (line.current[0] == '-' && !line.only_arguments) {
        answer_options(&line);
    } else if (!line.command) {
        answer_commands(&line);
    } else {
        argument_name(&line, name, sizeof(name));
        answer_argument(&line, name);
    }
    free(line.positional);
    return EXIT_OK;
}

static const Option *find_option(const Option *options, const char *word)
{
    for (; options && options->name; options++) {
        if (word[1] == '-' ? strcmp(options->name, word + 2) == 0
                           : options->letter == word[1] && !word[2]) {
            return options;
        }
    }
    return NULL;
}

static const Option *option_of(const Line *line, const char *word)
{
    const Option *option = line->command ? find_option(line->command->options, word) : NULL;
    return option ? option : find_option(GLOBAL_OPTIONS, word);
}

// Reads the line as options.c does, but accepts errors. Uses the options that say where tined is.
static void read_line(Line *line, int count, char **words)
{
    line->positional = calloc((size_t)count, sizeof(char *));
    line->current = words[count - 1];
    for (int i = 0; line->positional && i + 1 < count; i++) {
        char *word = words[i];
        if (!line->only_arguments && strcmp(word, "--") == 0) {
            line->only_arguments = true;
        } else if (!line->only_arguments && word[0] == '-' && word[1]) {
            const Option *option = option_of(line, word);
            if (!option || !option->value_name) continue;
            if (i + 2 == count) {
                line->value_of = option->value_name;
            } else if (strcmp(option->name, "socket") == 0) {
                snprintf(line->cli->url, sizeof(line->cli->url), "ipc://%s", words[i + 1]);
            } else if (strcmp(option->name, "url") == 0) {
                snprintf(line->cli->url, sizeof(line->cli->url), "%s", words[i + 1]);
            }
            i++;
        } else if (!line->command) {
            line->command = command_find(word);
            if (!line->command) line->value_of = "nothing"; // unknown command: no answers
        } else {
            line->positional[line->positional_count++] = word;
        }
    }
}

// Returns whether a value can be an answer. The shell inserts it into its line unchanged, so a
// value that would act on the terminal cannot.
static bool is_answerable(const char *value)
{
    for (Slice rest = slice_of(value); rest.size > 0;) {
        CodePoint point = utf8_decode(rest);
        if (!point.is_valid || display_is_unsafe(point.value)) return false;
        rest = slice_skip(rest, point.size);
    }
    return true;
}

// Prints an answer if it begins with the current word. The shell shows descriptions on a terminal,
// even though our output is a pipe.
static void answer(const Line *line, const char *value, const char *meaning)
{
    if (strncasecmp(value, line->current, strlen(line->current)) != 0) return;
    Printer out = line->cli->out;
    out.use = PRINT_TERMINAL;
    print(&out, "%s\t%.*s\n", value, MEANING_COLUMNS, meaning);
}

static void answer_commands(const Line *line)
{
    for (size_t i = 0; COMMANDS[i]; i++) {
        if (COMMANDS[i]->name[0] != '_') answer(line, COMMANDS[i]->name, COMMANDS[i]->summary);
    }
}

static void answer_options(const Line *line)
{
    const Option *lists[] = {line->command ? line->command->options : NULL, GLOBAL_OPTIONS};
    for (size_t i = 0; i < 2; i++) {
        for (const Option *option = lists[i]; option && option->name; option++) {
            char name[64];
            snprintf(name, sizeof(name), "--%s", option->name);
            answer(line, name, option->help);
        }
    }
}

// Finds the name of the argument at the current place, without brackets: "SESSION" for
// "[SESSION…]". The last argument may repeat.
static void argument_name(const Line *line, char *out, size_t out_bytes)
{
    const char *at = line->command->arguments;
    int index = line->positional_count;
    out[0] = '\0';
    while (*at) {
        size_t size = strcspn(at, " "), bare = strspn(at, "[");
        if (index == 0 || (!at[size] && strstr(at, "…"))) {
            snprintf(out, out_bytes, "%.*s", (int)strcspn(at + bare, "] \xe2"), at + bare);
            return;
        }
        index--;
        at += size + strspn(at + size, " ");
    }
}

static const char *meaning_of(const Session *session)
{
    return *session->title ? session->title : session->first_message_preview;
}

// Answers with recent sessions, by slug or ID, and with all sessions whose ID begins with the word.
static void answer_sessions(const Line *line)
{
    Tine *tine;
    if (cli_connect(line->cli, &tine)) return;
    ListSessionsRequest request = LIST_SESSIONS_REQUEST__INIT;
    CLEANUP(message_freep) ListSessionsResponse *reply = NULL;
    CLEANUP(message_freep) ResolveSessionResponse *resolved = NULL;
    request.order = SESSION_ORDER_LAST_ACTIVE;
    request.limit = ANSWER_SESSIONS;
    answer(line, "@last", "the session that was active last");
    if (tine_list_sessions(tine, &line->cli->call, &request, &reply)) return;
    for (size_t i = 0; i < reply->n_sessions; i++) {
        const Session *session = reply->sessions[i];
        bool has_slug = *session->slug && is_answerable(session->slug);
        if (has_slug) answer(line, session->slug, meaning_of(session));
        if (!has_slug || *line->current) answer(line, session->id, meaning_of(session));
    }
    if (reply->n_sessions < ANSWER_SESSIONS) return;
    ResolveSessionRequest prefix = RESOLVE_SESSION_REQUEST__INIT;
    prefix.by_case = TINE__V1__RESOLVE_SESSION_REQUEST__BY_ID_PREFIX;
    prefix.id_prefix = (char *)(uintptr_t)line->current;
    if (tine_resolve_session(tine, &line->cli->call, &prefix, &resolved)) return;
    for (size_t i = 0; i < resolved->n_sessions; i++) {
        answer(line, resolved->sessions[i]->id, meaning_of(resolved->sessions[i]));
    }
}

static const char *first_text(const Message *message)
{
    for (size_t i = 0; i < message->n_parts; i++) {
        if (message->parts[i]->kind_case == PART__KIND_TEXT) return message->parts[i]->text->text;
    }
    return message->text;
}

static void answer_messages(const Line *line)
{
    Tine *tine;
    SessionName name;
    if (line->positional_count == 0 || cli_connect(line->cli, &tine)) return;
    if (cli_find_session(line->cli, line->positional[0], &name)) return;
    MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
    CLEANUP(message_freep) MessagesForSessionResponse *reply = NULL;
    request.session_id = name.id;
    request.newest_first = true;
    request.limit = ANSWER_MESSAGES;
    answer(line, "@head", "the last message");
    if (tine_messages_for_session(tine, &line->cli->call, &request, &reply)) return;
    for (size_t i = 0; i < reply->n_messages; i++) {
        char meaning[512];
        snprintf(meaning, sizeof(meaning), "%s: %.400s", message_role_name(reply->messages[i]),
                 first_text(reply->messages[i]));
        answer(line, reply->messages[i]->id, meaning);
    }
}

static void answer_calls(const Line *line)
{
    const ProtobufCServiceDescriptor *service = &tine__v1__store_service__descriptor;
    for (unsigned i = 0; i < service->n_methods; i++)
        answer(line, service->methods[i].name, "");
}

static void answer_kinds(const Line *line)
{
    for (size_t i = 0; MESSAGE_KIND_NAMES[i]; i++)
        answer(line, MESSAGE_KIND_NAMES[i], "");
}

static void answer_roles(const Line *line)
{
    for (size_t i = 0; ROLE_NAMES[i]; i++)
        answer(line, ROLE_NAMES[i], "");
}

// Answers with the alternatives of "list|set".
static void answer_words(const Line *line, const char *words)
{
    while (*words) {
        char word[64];
        size_t size = strcspn(words, "|");
        snprintf(word, sizeof(word), "%.*s", (int)size, words);
        answer(line, word, "");
        words += size + (words[size] == '|');
    }
}

static void answer_color(const Line *line)
{
    answer_words(line, "auto|always|never");
}

static void answer_files(const Line *line)
{
    print(&line->cli->out, ":files\n");
}

static const struct {
    const char *name;
    void (*answer)(const Line *line);
} ARGUMENTS[] = {
    {"SESSION", answer_sessions}, {"MESSAGE", answer_messages}, {"COMMAND", answer_commands},
    {"CALL", answer_calls},       {"NAME", answer_calls},       {"KIND", answer_kinds},
    {"ROLE", answer_roles},       {"WHEN", answer_color},       {"FILE", answer_files},
    {"DIR", answer_files},        {"DIRECTORY", answer_files},  {"PATH", answer_files},
    {"BACKUP", answer_files},
};

static void answer_argument(const Line *line, const char *name)
{
    for (size_t i = 0; i < sizeof(ARGUMENTS) / sizeof(*ARGUMENTS); i++) {
        if (strcmp(ARGUMENTS[i].name, name) == 0) {
            ARGUMENTS[i].answer(line);
            return;
        }
    }
    // Names in lower case are literal words.
    if (name[0] >= 'a' && name[0] <= 'z' && strcmp(name, "nothing") != 0) answer_words(line, name);
}

const Command command_complete = {
    .name = "__complete",
    .arguments = "[WORD…]",
    .summary = "answers the completion scripts of shells",
    .examples = {"tine __complete -- fork @l", "tine __complete -- log --si"},
    .argument_count_max = COMMAND_ANY_COUNT,
    .run = run,
};
