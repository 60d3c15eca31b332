// The configuration: a table of options says how each value is read and where it is stored.

#include "daemon/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/path.h"
#include "text/print.h"
#include "text/utf8.h"

typedef enum OptionKind {
    OPTION_FLAG,     // takes no value; in the environment 0 or 1
    OPTION_TEXT,     // up to `max` - 1 bytes
    OPTION_NUMBER,   // `min` to `max`
    OPTION_DURATION, // likewise, in milliseconds
    OPTION_CHOICE,   // one of `choices`, its index
} OptionKind;

typedef struct Option {
    const char *name;
    OptionKind kind;
    size_t offset; // in Config
    uint64_t min, max;
    const char *const *choices;
    const char *value_name, *help;
} Option;

static const char *const LEVELS[] = {"debug", "info", "warning", "error", "off", NULL};
static const char *const DURABILITIES[] = {"sync", "relaxed", NULL};
static const char *const FORMATS[] = {"text", "json", NULL};

#define AGE_MS_MAX (UINT64_C(100) * 365 * 24 * 3600 * 1000)
#define AT(field) offsetof(Config, field)
#define TEXT(field) OPTION_TEXT, AT(field), 0, sizeof(((Config *)NULL)->field), NULL

static const Option OPTIONS[] = {
    {"data", TEXT(data), "DIRECTORY", "directory of the store; $XDG_DATA_HOME/tine"},
    {"socket", TEXT(socket), "PATH", "socket to listen on; $XDG_RUNTIME_DIR/tine/tine.sock"},
    {"listen", TEXT(listen), "URL", "also listen on tcp://127.0.0.1:PORT; needs --token-file"},
    {"token-file", TEXT(token_file), "FILE",
     "holds the token that callers over tcp must send; mode 0600"},
    {"ephemeral", OPTION_FLAG, AT(is_ephemeral), 0, 0, NULL, NULL,
     "keep the store in memory only; it ends with the process"},
    {"safe", OPTION_FLAG, AT(is_safe), 0, 0, NULL, NULL,
     "safe mode: read what can be read and write nothing; entered after two crashes"},
    {"no-safe", OPTION_FLAG, AT(is_not_safe), 0, 0, NULL, NULL,
     "leave safe mode: forget the crashes"},
    {"durability", OPTION_CHOICE, AT(durability), 0, 0, DURABILITIES, "MODE",
     "sync, or relaxed (acknowledged writes are on the disk a little later); sync"},
    {"flush-every", OPTION_DURATION, AT(flush_ms), 1, FLUSH_MS_MAX, NULL, "TIME",
     "relaxed: how much later, at most; 100ms"},
    {"max-fork-depth", OPTION_NUMBER, AT(fork_depth_max), 0, FORK_DEPTH_OPTION_MAX, NULL, "N",
     "how many ancestors a fork may read; 0: no limit"},
    {"events-max", OPTION_NUMBER, AT(event_count_max), 1, INT64_MAX, NULL, "N",
     "how many events are kept; 1000000"},
    {"events-age", OPTION_DURATION, AT(event_age_ms_max), 1, AGE_MS_MAX, NULL, "TIME",
     "how long events are kept; 7d"},
    {"operations-max", OPTION_NUMBER, AT(operation_count_max), 1, INT64_MAX, NULL, "N",
     "how many operation ids are kept; 10000000"},
    {"operations-age", OPTION_DURATION, AT(operation_age_ms_max), 1, AGE_MS_MAX, NULL, "TIME",
     "how long operation ids are kept; 24h"},
    {"idle-exit", OPTION_DURATION, AT(idle_exit_ms), 0, AGE_MS_MAX, NULL, "TIME",
     "end after this time without a client; 0: never"},
    {"log-level", OPTION_CHOICE, AT(log_level), 0, 0, LEVELS, "LEVEL",
     "debug, info, warning, error or off; info"},
    {"log-format", OPTION_CHOICE, AT(log_format), 0, 0, FORMATS, "FORMAT", "text or json; text"},
    {"log-file", TEXT(log_file), "FILE", "log here, not to standard error; SIGHUP opens it again"},
};

enum { OPTION_COUNT = sizeof(OPTIONS) / sizeof(*OPTIONS), NAME_BYTES_MAX = 32 };

// Reads a whole number; `*out_rest` is what follows it.
static bool read_number(const char *text, uint64_t *out, const char **out_rest)
{
    if (!isdigit((unsigned char)*text)) return false;
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    *out_rest = end;
    return errno == 0;
}

static bool read_duration(const char *text, uint64_t *out_ms)
{
    static const struct {
        const char *name;
        uint64_t ms;
    } UNITS[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    const char *unit;
    if (!read_number(text, out_ms, &unit)) return false;
    if (*out_ms == 0 && !*unit) return true;
    for (size_t i = 0; i < sizeof(UNITS) / sizeof(*UNITS); i++) {
        if (strcmp(unit, UNITS[i].name) != 0) continue;
        if (*out_ms > UINT64_MAX / UNITS[i].ms) return false;
        *out_ms *= UNITS[i].ms;
        return true;
    }
    return false;
}

static bool read_choice(const char *text, const char *const *choices, int *out)
{
    for (int i = 0; choices[i]; i++) {
        if (strcmp(text, choices[i]) != 0) continue;
        *out = i;
        return true;
    }
    return false;
}

// Sets an option. `said_as` is the name that the user gave it.
static Error set_option(Config *config, const Option *option, const char *said_as,
                        const char *value, ErrorDetail *detail)
{
    void *place = (char *)config + option->offset;
    uint64_t number = 0;
    const char *rest = "";
    switch (option->kind) {
    case OPTION_FLAG:
        *(bool *)place = strcmp(value, "1") == 0;
        if (*(bool *)place || strcmp(value, "0") == 0) return ERROR_NONE;
        return error_say(detail, ERROR_INVALID_ARGUMENT, "%s: '%s' is neither 0 nor 1", said_as,
                         value);
    case OPTION_TEXT:
        if (*value && strlen(value) < option->max) {
            memcpy(place, value, strlen(value) + 1);
            return ERROR_NONE;
        }
        return error_say(detail, ERROR_INVALID_ARGUMENT, "%s: 1 to %llu bytes", said_as,
                         (unsigned long long)option->max - 1);
    case OPTION_NUMBER:
    case OPTION_DURATION:
        if (option->kind == OPTION_NUMBER ? read_number(value, &number, &rest) && !*rest
                                          : read_duration(value, &number)) {
            if (number >= option->min && number <= option->max) {
                *(uint64_t *)place = number;
                return ERROR_NONE;
            }
        }
        if (option->kind == OPTION_NUMBER) {
            return error_say(detail, ERROR_INVALID_ARGUMENT,
                             "%s: '%s' is not a number from %llu to %llu", said_as, value,
                             (unsigned long long)option->min, (unsigned long long)option->max);
        }
        return error_say(detail, ERROR_INVALID_ARGUMENT,
                         "%s: '%s' is not a time like 500ms, 90s, 30m, 24h or 7d", said_as, value);
    case OPTION_CHOICE:
        if (read_choice(value, option->choices, place)) return ERROR_NONE;
        return error_say(detail, ERROR_INVALID_ARGUMENT, "%s: '%s' is not one of: %s", said_as,
                         value, option->help);
    }
    return ERROR_INVALID_ARGUMENT;
}

static Error read_environment(Config *config, ErrorDetail *detail)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        char name[NAME_BYTES_MAX + 8];
        int size = snprintf(name, sizeof(name), "TINE_%s", OPTIONS[i].name);
        for (int j = 0; j < size; j++) {
            name[j] = name[j] == '-' ? '_' : (char)toupper((unsigned char)name[j]);
        }
        const char *value = getenv(name);
        if (!value || !*value) continue;
        Error error = set_option(config, &OPTIONS[i], name, value, detail);
        if (error) return error;
    }
    return ERROR_NONE;
}

static const Option *option_find(const char *name, size_t size)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (strlen(OPTIONS[i].name) == size && memcmp(OPTIONS[i].name, name, size) == 0) {
            return &OPTIONS[i];
        }
    }
    return NULL;
}

static bool read_action(const char *argument, Config *config)
{
    if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0) {
        config->action = CONFIG_HELP;
    } else if (strcmp(argument, "--version") == 0) {
        config->action = CONFIG_VERSION;
    } else if (strcmp(argument, "--check-config") == 0) {
        if (config->action == CONFIG_RUN) config->action = CONFIG_CHECK;
    } else {
        return false;
    }
    return true;
}

static Error read_flags(int argument_count, char **arguments, Config *config, ErrorDetail *detail)
{
    for (int i = 1; i < argument_count; i++) {
        const char *argument = arguments[i];
        if (read_action(argument, config)) continue;
        size_t size = strcspn(argument, "=");
        const Option *option =
            strncmp(argument, "--", 2) == 0 ? option_find(argument + 2, size - 2) : NULL;
        if (!option) {
            return error_say(detail, ERROR_INVALID_ARGUMENT,
                             "there is no option '%s'; see tined --help", argument);
        }
        const char *value = argument[size] ? argument + size + 1 : NULL;
        if (option->kind == OPTION_FLAG && value) {
            return error_say(detail, ERROR_INVALID_ARGUMENT, "--%s takes no value", option->name);
        }
        if (option->kind == OPTION_FLAG) value = "1";
        if (!value && i + 1 < argument_count) value = arguments[++i];
        if (!value) {
            return error_say(detail, ERROR_INVALID_ARGUMENT, "--%s needs a value: %s", option->name,
                             option->value_name);
        }
        char name[NAME_BYTES_MAX + 8];
        snprintf(name, sizeof(name), "--%s", option->name);
        Error error = set_option(config, option, name, value, detail);
        if (error) return error;
    }
    return ERROR_NONE;
}

// Allows loopback only: there is no TLS, and the token is sent in plain text.
static Error check_listen(const Config *config, ErrorDetail *detail)
{
    static const char *const HOSTS[] = {"127.0.0.1:", "[::1]:", "localhost:"};
    const char *rest = NULL;
    for (size_t i = 0; i < sizeof(HOSTS) / sizeof(*HOSTS); i++) {
        size_t size = strlen(HOSTS[i]);
        if (strncmp(config->listen, "tcp://", 6) == 0 &&
            strncmp(config->listen + 6, HOSTS[i], size) == 0) {
            rest = config->listen + 6 + size;
        }
    }
    uint64_t port = 0;
    if (!rest || !read_number(rest, &port, &rest) || *rest || port == 0 || port > UINT16_MAX) {
        return error_say(detail, ERROR_INVALID_ARGUMENT,
                         "--listen: '%s' is not tcp://127.0.0.1:PORT (or [::1], or localhost)",
                         config->listen);
    }
    if (*config->token_file) return ERROR_NONE;
    return error_say(detail, ERROR_INVALID_ARGUMENT,
                     "--listen needs --token-file: any user of this host can connect to a port");
}

// A token is a string on the wire and a line in files: valid UTF-8 without control characters.
static bool is_one_line(Slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (iscntrl(text.bytes[i])) return false;
    }
    return utf8_is_valid(text);
}

static Error read_token(Config *config, ErrorDetail *detail)
{
    const char *path = config->token_file;
    // Does not block: a named pipe is refused below.
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat found;
    if (descriptor < 0 || fstat(descriptor, &found) != 0) {
        Error error = error_say(detail, ERROR_INVALID_ARGUMENT, "--token-file: cannot read %s: %s",
                                path, strerror(errno));
        if (descriptor >= 0) close(descriptor);
        return error;
    }
    ssize_t size = read(descriptor, config->token, sizeof(config->token));
    close(descriptor);
    if (!S_ISREG(found.st_mode) || (found.st_mode & 077) != 0) {
        return error_say(detail, ERROR_INVALID_ARGUMENT,
                         "--token-file: %s must be a file that only its owner can read (chmod 600)",
                         path);
    }
    while (size > 0 && isspace((unsigned char)config->token[size - 1]))
        size--;
    if (size < TOKEN_BYTES_MIN || size > TOKEN_BYTES_MAX) {
        return error_say(detail, ERROR_INVALID_ARGUMENT,
                         "--token-file: the token in %s must have %d to %d bytes", path,
                         TOKEN_BYTES_MIN, TOKEN_BYTES_MAX);
    }
    if (!is_one_line(slice(config->token, (size_t)size))) {
        return error_say(detail, ERROR_INVALID_ARGUMENT,
                         "--token-file: the token in %s must be one line of text, as `openssl rand "
                         "-hex 32` makes it",
                         path);
    }
    config->token[size] = '\0';
    return ERROR_NONE;
}

static Error complete(Config *config, ErrorDetail *detail)
{
    Error error = ERROR_NONE;
    if (config->is_ephemeral && *config->data) {
        return error_say(detail, ERROR_INVALID_ARGUMENT,
                         "--ephemeral and --data: a store is either kept or not");
    }
    if (config->is_safe && (config->is_not_safe || config->is_ephemeral)) {
        return error_say(detail, ERROR_INVALID_ARGUMENT, "--safe and --%s: choose one",
                         config->is_ephemeral ? "ephemeral" : "no-safe");
    }
    if (!config->is_ephemeral && !*config->data) {
        config->is_data_default = true;
        error = path_data_default(config->data, sizeof(config->data), detail);
    }
    if (!error && !*config->socket) {
        error = path_socket_default(config->socket, sizeof(config->socket), detail);
    }
    char *const paths[] = {config->data, config->socket, config->log_file, config->token_file};
    for (size_t i = 0; !error && i < sizeof(paths) / sizeof(*paths); i++) {
        if (*paths[i]) error = path_make_absolute(paths[i], PATH_BYTES_MAX, detail);
    }
    if (!error && strlen(config->socket) > SOCKET_PATH_BYTES_MAX) {
        error = error_say(detail, ERROR_INVALID_ARGUMENT,
                          "--socket: %s has %zu bytes; a socket's path may have %d", config->socket,
                          strlen(config->socket), SOCKET_PATH_BYTES_MAX);
    }
    char events[SOCKET_PATH_BYTES_MAX + 1];
    if (!error && !socket_path_of_events(config->socket, events)) {
        error = error_say(detail, ERROR_INVALID_ARGUMENT,
                          "--socket: %s is too long: a socket's path may have %d bytes, and that "
                          "of the events beside it ends in .events instead of .sock",
                          config->socket, SOCKET_PATH_BYTES_MAX);
    }
    if (!error && *config->listen) error = check_listen(config, detail);
    if (!error && *config->token_file) error = read_token(config, detail);
    return error;
}

Error config_read(int argument_count, char **arguments, ErrorDetail *detail, Config *out)
{
    *out = (Config){
        .event_count_max = EVENT_COUNT_DEFAULT,
        .event_age_ms_max = EVENT_AGE_MS_DEFAULT,
        .operation_count_max = OPERATION_COUNT_DEFAULT,
        .operation_age_ms_max = OPERATION_AGE_MS_DEFAULT,
        .flush_ms = FLUSH_MS_DEFAULT,
        .log_level = LOG_INFO,
        .log_format = LOG_TEXT,
    };
    Error error = read_flags(argument_count, arguments, out, detail);
    if (error || out->action == CONFIG_HELP || out->action == CONFIG_VERSION) return error;
    // Once more after the environment, because a flag wins.
    error = read_environment(out, detail);
    if (!error) error = read_flags(argument_count, arguments, out, detail);
    return error ? error : complete(out, detail);
}

void config_print(const Config *config)
{
    Printer out = print_to_stdout();
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const Option *option = &OPTIONS[i];
        const void *place = (const char *)config + option->offset;
        const char *text = place;
        print(&out, "%s=", option->name);
        switch (option->kind) {
        case OPTION_FLAG: print(&out, *(const bool *)place ? "1\n" : "0\n"); break;
        case OPTION_TEXT: print_block(&out, slice_of(*text ? text : "\n"), "", 0); break;
        case OPTION_NUMBER: print(&out, "%llu\n", *(const unsigned long long *)place); break;
        case OPTION_DURATION: print(&out, "%llums\n", *(const unsigned long long *)place); break;
        case OPTION_CHOICE: print(&out, "%s\n", option->choices[*(const int *)place]); break;
        }
    }
}

void config_print_help(void)
{
    Printer out = print_to_stdout();
    print(&out, "tined: keeps the conversations of the AI agents on this host.\n\n"
                "    tined [OPTION…]\n\n");
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        char name[NAME_BYTES_MAX + NAME_BYTES_MAX];
        const char *value = OPTIONS[i].value_name;
        snprintf(name, sizeof(name), "--%s%s%s", OPTIONS[i].name, value ? " " : "",
                 value ? value : "");
        print(&out, "  %-24s %s\n", name, OPTIONS[i].help);
    }
    print(&out,
          "  --check-config           print the configuration and do nothing\n"
          "  --version\n"
          "  --help\n\n"
          "Each option is also an environment variable: --log-level is TINE_LOG_LEVEL, and\n"
          "TINE_EPHEMERAL is 1 or 0. A flag wins.\n\n"
          "Exit codes: 0 it was told to stop, 1 it cannot run, 2 wrong usage, 3 the store or the\n"
          "socket is in use, 4 the store failed.\n");
}
