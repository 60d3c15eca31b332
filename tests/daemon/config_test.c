// The configuration: what is wrong is one clear line and an exit code, and nothing is touched.

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "process.h"

static char *in_test_dir(const char *name)
{
    char *path;
    CHECK(asprintf(&path, "%s/%s", test_dir(), name) > 0);
    return path;
}

static void write_file(const char *path, const char *text, mode_t mode)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    CHECK(file >= 0);
    CHECK_EQ(fchmod(file, mode), 0);
    CHECK_EQ(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
}

// Runs tined with these arguments after --data and --socket of the test's own; it must end with the
// code, say one line that holds `part`, and have made nothing.
static void expect_refused(int code, const char *part, const char *const *arguments)
{
    char *data = in_test_dir("data"), *socket = in_test_dir("run/s");
    const char *list[16] = {"--data", data, "--socket", socket};
    size_t count = 4;
    for (; *arguments; arguments++)
        list[count++] = *arguments;
    Run run;
    tined_run(&run, list, NULL);
    printf("%s%s", run.output, run.errors);
    CHECK_EQ(run.code, code);
    CHECK(strstr(run.errors, part) != NULL);
    CHECK(strncmp(run.errors, "tined: ", 7) == 0);
    CHECK_EQ(text_line_count(run.errors), 1);
    CHECK_STR(run.output, "");
    CHECK(!file_exists(data));
    char *directory = in_test_dir("run");
    CHECK(!file_exists(directory));
    free(directory);
    free(data);
    free(socket);
}

#define REFUSED(code, part, ...) expect_refused((code), (part), (const char *[]){__VA_ARGS__, NULL})

TEST(wrong_flags_are_usage)
{
    REFUSED(EXIT_CODE_USAGE, "no option '--dta'", "--dta", "x");
    REFUSED(EXIT_CODE_USAGE, "no option 'x'", "x");
    REFUSED(EXIT_CODE_USAGE, "--idle-exit needs a value", "--idle-exit");
    REFUSED(EXIT_CODE_USAGE, "--ephemeral takes no value", "--ephemeral=yes");
    REFUSED(EXIT_CODE_USAGE, "--ephemeral and --data", "--ephemeral");
    REFUSED(EXIT_CODE_USAGE, "--data: 1 to 4095 bytes", "--data=");
}

TEST(wrong_values_are_usage)
{
    REFUSED(EXIT_CODE_USAGE, "--idle-exit: '5' is not a time", "--idle-exit", "5");
    REFUSED(EXIT_CODE_USAGE, "--events-age: '1w'", "--events-age=1w");
    REFUSED(EXIT_CODE_USAGE, "--events-age: '-1s'", "--events-age=-1s");
    REFUSED(EXIT_CODE_USAGE, "--events-age: '99999999999999999d'",
            "--events-age=99999999999999999d");
    REFUSED(EXIT_CODE_USAGE, "--events-max: '0' is not a number from 1", "--events-max", "0");
    REFUSED(EXIT_CODE_USAGE, "--max-fork-depth: '1000001'", "--max-fork-depth", "1000001");
    REFUSED(EXIT_CODE_USAGE, "--max-fork-depth: '8x'", "--max-fork-depth", "8x");
    REFUSED(EXIT_CODE_USAGE, "--log-level: 'loud' is not one of", "--log-level", "loud");
    REFUSED(EXIT_CODE_USAGE, "--log-format: 'xml' is not one of", "--log-format=xml");
}

TEST(a_socket_path_over_107_bytes_is_usage)
{
    char path[109] = "/tmp/";
    memset(path + 5, 'x', 103);
    REFUSED(EXIT_CODE_USAGE, "has 108 bytes; a socket's path may have 107", "--socket", path);
}

TEST(tcp_is_loopback_only_and_needs_a_token)
{
    char *token = in_test_dir("token"), *open_token = in_test_dir("open"), *short_token;
    short_token = in_test_dir("short");
    write_file(token, "0123456789abcdef\n", 0600);
    write_file(open_token, "0123456789abcdef\n", 0644);
    write_file(short_token, "0123456789abcde\n", 0600);
    REFUSED(EXIT_CODE_USAGE, "is not tcp://127.0.0.1:PORT", "--listen", "tcp://0.0.0.0:7000");
    REFUSED(EXIT_CODE_USAGE, "is not tcp://127.0.0.1:PORT", "--listen", "tcp://127.0.0.1:70000",
            "--token-file", token);
    REFUSED(EXIT_CODE_USAGE, "is not tcp://127.0.0.1:PORT", "--listen", "ipc:///tmp/x");
    REFUSED(EXIT_CODE_USAGE, "--listen needs --token-file", "--listen", "tcp://127.0.0.1:7000");
    REFUSED(EXIT_CODE_USAGE, "only its owner can read", "--listen", "tcp://127.0.0.1:7000",
            "--token-file", open_token);
    REFUSED(EXIT_CODE_USAGE, "must have 16 to 256 bytes", "--token-file", short_token);
    REFUSED(EXIT_CODE_USAGE, "cannot read", "--token-file", "/nowhere/token");
    free(token);
    free(open_token);
    free(short_token);
}

TEST(places_that_cannot_be_are_failures)
{
    REFUSED(EXIT_CODE_FAILED, "cannot use /dev/null/x: Not a directory", "--data", "/dev/null/x");
    REFUSED(EXIT_CODE_FAILED, "cannot use /dev/null", "--socket", "/dev/null/s");
    REFUSED(EXIT_CODE_FAILED, "--log-file: cannot open", "--log-file", "/nowhere/log");
    if (geteuid() != 0) {
        REFUSED(EXIT_CODE_FAILED, "cannot be written to", "--data", "/usr/tine-test");
    }
}

TEST(check_config_says_what_would_be_done_and_does_nothing)
{
    char *data = in_test_dir("data"), *socket = in_test_dir("run/s"), *line;
    const char *arguments[] = {"--check-config", "--data", data, "--socket", socket,
                               "--idle-exit=30m", NULL};
    Run run;
    tined_run(&run, arguments, NULL);
    CHECK_EQ(run.code, 0);
    CHECK_STR(run.errors, "");
    CHECK(asprintf(&line, "data=%s\n", data) > 0);
    CHECK(strstr(run.output, line) != NULL);
    CHECK(strstr(run.output, "idle-exit=1800000ms\n") != NULL);
    CHECK(!file_exists(data));
    free(line);
    free(data);
    free(socket);
}

TEST(the_environment_says_the_same_and_a_flag_wins)
{
    const char *arguments[] = {"--check-config", "--events-max", "7", NULL};
    const char *environment[] = {"TINE_DATA=/tmp/of-the-environment", "TINE_EVENTS_MAX=5",
                                 "TINE_LOG_FORMAT=json", "XDG_RUNTIME_DIR=/tmp/run", NULL};
    Run run;
    tined_run(&run, arguments, environment);
    CHECK_EQ(run.code, 0);
    CHECK(strstr(run.output, "data=/tmp/of-the-environment\n") != NULL);
    CHECK(strstr(run.output, "events-max=7\n") != NULL);
    CHECK(strstr(run.output, "log-format=json\n") != NULL);
    CHECK(strstr(run.output, "socket=/tmp/run/tine/tine.sock\n") != NULL);

    tined_run(&run, (const char *[]){"--check-config", NULL},
              (const char *[]){"TINE_EVENTS_MAX=many", NULL});
    CHECK_EQ(run.code, EXIT_CODE_USAGE);
    CHECK(strstr(run.errors, "TINE_EVENTS_MAX: 'many'") != NULL);
}

TEST(places_follow_the_xdg_rules)
{
    Run run;
    char socket[64];
    tined_run(&run, (const char *[]){"--check-config", NULL},
              (const char *[]){"XDG_DATA_HOME=/tmp/d", "XDG_RUNTIME_DIR=", NULL});
    snprintf(socket, sizeof(socket), "socket=/tmp/tine-%u/tine.sock\n", geteuid());
    CHECK(strstr(run.output, "data=/tmp/d/tine\n") != NULL);
    CHECK(strstr(run.output, socket) != NULL);
    tined_run(&run, (const char *[]){"--check-config", NULL},
              (const char *[]){"XDG_DATA_HOME=relative", "HOME=/tmp/h", NULL});
    CHECK(strstr(run.output, "data=/tmp/h/.local/share/tine\n") != NULL);
}

TEST(version_and_help)
{
    Run run;
    tined_run(&run, (const char *[]){"--version", NULL}, NULL);
    CHECK_EQ(run.code, 0);
    CHECK_STR(run.output, "tined " TINE_VERSION "\n");
    tined_run(&run, (const char *[]){"--help", NULL}, NULL);
    CHECK_EQ(run.code, 0);
    CHECK(strstr(run.output, "--max-fork-depth N") != NULL);
    CHECK(strstr(run.output, "Exit codes: 0") != NULL);
}
