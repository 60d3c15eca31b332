// The configuration: what is wrong is one clear line and an exit code, and nothing is touched.

#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
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

static void write_bytes(const char *path, Slice bytes, mode_t mode)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    CHECK(file >= 0);
    CHECK_EQ(fchmod(file, mode), 0);
    CHECK_EQ(write(file, bytes.bytes, bytes.size), (ssize_t)bytes.size);
    close(file);
}

static void write_file(const char *path, const char *text, mode_t mode)
{
    write_bytes(path, slice_of(text), mode);
}

// A run that was refused: one clear line, and nothing was touched.
static void check_refused(const Run *run, int code, const char *part, const char *before)
{
    printf("%s%s", run->output, run->errors);
    CHECK_EQ(run->code, code);
    CHECK(strstr(run->errors, part) != NULL);
    CHECK(strncmp(run->errors, "tined: ", 7) == 0);
    CHECK_EQ(text_line_count(run->errors), 1);
    CHECK_STR(run->output, "");
    char *after = directory_text(test_dir());
    CHECK_STR(after, before);
    free(after);
}

// Runs tined with these arguments after --data and --socket of the test's own: it must be refused,
// and so must the same with --check-config.
static void expect_refused(int code, const char *part, const char *const *arguments)
{
    char *data = in_test_dir("data"), *socket = in_test_dir("run/s");
    char *before = directory_text(test_dir());
    const char *list[16] = {"--check-config", "--data", data, "--socket", socket};
    size_t count = 5;
    for (; *arguments; arguments++)
        list[count++] = *arguments;
    Run run;
    for (size_t first = 0; first < 2; first++) {
        tined_run(&run, list + first, NULL);
        check_refused(&run, code, part, before);
    }
    free(before);
    free(data);
    free(socket);
}

#define REFUSED(code, part, ...) expect_refused((code), (part), (const char *[]){__VA_ARGS__, NULL})

TEST(wrong_flags_are_usage)
{
    REFUSED(TINED_EXIT_USAGE, "no option '--dta'", "--dta", "x");
    REFUSED(TINED_EXIT_USAGE, "no option 'x'", "x");
    REFUSED(TINED_EXIT_USAGE, "--idle-exit needs a value", "--idle-exit");
    REFUSED(TINED_EXIT_USAGE, "--ephemeral takes no value", "--ephemeral=yes");
    REFUSED(TINED_EXIT_USAGE, "--ephemeral and --data", "--ephemeral");
    REFUSED(TINED_EXIT_USAGE, "--data: 1 to 4095 bytes", "--data=");
}

TEST(wrong_values_are_usage)
{
    REFUSED(TINED_EXIT_USAGE, "--idle-exit: '5' is not a time", "--idle-exit", "5");
    REFUSED(TINED_EXIT_USAGE, "--events-age: '1w'", "--events-age=1w");
    REFUSED(TINED_EXIT_USAGE, "--events-age: '-1s'", "--events-age=-1s");
    REFUSED(TINED_EXIT_USAGE, "--events-age: '99999999999999999d'",
            "--events-age=99999999999999999d");
    REFUSED(TINED_EXIT_USAGE, "--events-max: '0' is not a number from 1", "--events-max", "0");
    REFUSED(TINED_EXIT_USAGE, "--operations-max: '0' is not a number from 1", "--operations-max=0");
    REFUSED(TINED_EXIT_USAGE, "--max-fork-depth: '1000001'", "--max-fork-depth", "1000001");
    REFUSED(TINED_EXIT_USAGE, "--max-fork-depth: '8x'", "--max-fork-depth", "8x");
    REFUSED(TINED_EXIT_USAGE, "--log-level: 'loud' is not one of", "--log-level", "loud");
    REFUSED(TINED_EXIT_USAGE, "--log-format: 'xml' is not one of", "--log-format=xml");
}

TEST(a_socket_path_over_107_bytes_is_usage)
{
    char path[109] = "/tmp/";
    memset(path + 5, 'x', 103);
    REFUSED(TINED_EXIT_USAGE, "has 108 bytes; a socket's path may have 107", "--socket", path);
    path[101] = '\0'; // no room for ".events"
    REFUSED(TINED_EXIT_USAGE, "and that of the events beside it ends in .events", "--socket", path);
}

TEST(tcp_is_loopback_only_and_needs_a_token)
{
    char *token = in_test_dir("token"), *open_token = in_test_dir("open"), *short_token;
    short_token = in_test_dir("short");
    write_file(token, "0123456789abcdef\n", 0600);
    write_file(open_token, "0123456789abcdef\n", 0644);
    write_file(short_token, "0123456789abcde\n", 0600);
    REFUSED(TINED_EXIT_USAGE, "is not tcp://127.0.0.1:PORT", "--listen", "tcp://0.0.0.0:7000");
    REFUSED(TINED_EXIT_USAGE, "is not tcp://127.0.0.1:PORT", "--listen", "tcp://127.0.0.1:70000",
            "--token-file", token);
    REFUSED(TINED_EXIT_USAGE, "is not tcp://127.0.0.1:PORT", "--listen", "tcp://127.0.0.1:0",
            "--token-file", token); // nobody would know which it is
    REFUSED(TINED_EXIT_USAGE, "is not tcp://127.0.0.1:PORT", "--listen", "ipc:///tmp/x");
    REFUSED(TINED_EXIT_USAGE, "--listen needs --token-file", "--listen", "tcp://127.0.0.1:7000");
    REFUSED(TINED_EXIT_USAGE, "only its owner can read", "--listen", "tcp://127.0.0.1:7000",
            "--token-file", open_token);
    REFUSED(TINED_EXIT_USAGE, "must have 16 to 256 bytes", "--token-file", short_token);
    REFUSED(TINED_EXIT_USAGE, "cannot read", "--token-file", "/nowhere/token");
    free(token);
    free(open_token);
    free(short_token);
}

// Random bytes are no token: it would end at the first zero byte, and before that ask for nothing.
TEST(a_token_is_text)
{
    static const struct {
        const char *bytes;
        size_t size;
    } TOKENS[] = {
        {"\0"
         "0123456789abcdef",
         17},
        {"0\0"
         "123456789abcdef",
         17},
        {"0123456789abcdef\n0123456789abcdef", 33},
        {"0123456789abcdef\x1b", 17},
        {"0123456789abcdef\xff", 17},
    };
    char *path = in_test_dir("token"), *pipe = in_test_dir("pipe");
    for (size_t i = 0; i < sizeof(TOKENS) / sizeof(*TOKENS); i++) {
        write_bytes(path, slice(TOKENS[i].bytes, TOKENS[i].size), 0600);
        REFUSED(TINED_EXIT_USAGE, "must be one line of text", "--token-file", path);
    }
    CHECK_EQ(mkfifo(pipe, 0600), 0);
    REFUSED(TINED_EXIT_USAGE, "must be a file that only its owner can read", "--token-file", pipe);
    free(path);
    free(pipe);
}

TEST(a_token_may_end_in_any_line_end)
{
    static const char *const ENDS[] = {"", "\n", "\r\n"};
    char *path = in_test_dir("token"), *option;
    CHECK(asprintf(&option, "--token-file=%s", path) > 0);
    for (size_t i = 0; i < sizeof(ENDS) / sizeof(*ENDS); i++) {
        char text[64];
        snprintf(text, sizeof(text), "0123456789 abcdef%s", ENDS[i]);
        write_file(path, text, 0600);
        char *arguments[] = {"tined", "--ephemeral", "--socket=/tmp/s", option};
        static Config config;
        CHECK_EQ(config_read(4, arguments, NULL, &config), ERROR_NONE);
        CHECK_STR(config.token, "0123456789 abcdef");
    }
    free(path);
    free(option);
}

TEST(places_that_cannot_be_are_failures)
{
    REFUSED(TINED_EXIT_FAILED, "cannot use /dev/null/x: Not a directory", "--data", "/dev/null/x");
    REFUSED(TINED_EXIT_FAILED, "cannot use /dev/null", "--socket", "/dev/null/s");
    char *file = in_test_dir("file"), *below = in_test_dir("file/data");
    write_file(file, "no directory", 0600);
    REFUSED(TINED_EXIT_FAILED, "file is not a directory", "--data", file);
    REFUSED(TINED_EXIT_FAILED, "file/data: Not a directory", "--data", below);
    REFUSED(TINED_EXIT_FAILED, "is there and is no socket; take it away", "--socket", file);
    REFUSED(TINED_EXIT_FAILED, "cannot open /nowhere/log: No such file", "--log-file",
            "/nowhere/log");
    free(file);
    free(below);
}

static int run_as_nobody(const void *context)
{
    const Config *config = context;
    if (setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0) return 100;
    return (int)daemon_run(config);
}

TEST(a_directory_that_cannot_be_written_to_is_a_failure)
{
    if (geteuid() != 0) {
        REFUSED(TINED_EXIT_FAILED, "cannot be written to", "--data", "/usr/tine-test");
        return;
    }
    // What root cannot write to there is not.
    Config config = {.log_level = LOG_OFF, .data = "/usr/tine-test"};
    snprintf(config.socket, sizeof(config.socket), "/tmp/tine-test-%d", getpid());
    char *before = directory_text(test_dir());
    Run run;
    child_run(&run, run_as_nobody, &config);
    check_refused(&run, TINED_EXIT_FAILED, "/usr cannot be written to", before);
    CHECK(!file_exists(config.socket));
    free(before);
}

static int run_daemon(const void *context)
{
    return (int)daemon_run(context);
}

static int check_daemon(const void *context)
{
    return (int)daemon_check(context);
}

TEST(a_data_directory_on_a_network_file_system_is_refused)
{
    static const struct {
        unsigned long type;
        const char *name;
    } REFUSED_TYPES[] = {{NFS_SUPER_MAGIC, "is on NFS"},   {SMB_SUPER_MAGIC, "is on SMB"},
                         {CIFS_SUPER_MAGIC, "is on CIFS"}, {SMB2_SUPER_MAGIC, "is on SMB"},
                         {V9FS_MAGIC, "is on 9p"},         {FUSE_SUPER_MAGIC, "is on FUSE"}};
    Config config = {.log_level = LOG_OFF};
    snprintf(config.data, sizeof(config.data), "%s/share/data", test_dir());
    snprintf(config.socket, sizeof(config.socket), "%s/run/s", test_dir());
    char *before = directory_text(test_dir());
    Run run;
    for (size_t i = 0; i < sizeof(REFUSED_TYPES) / sizeof(*REFUSED_TYPES); i++) {
        config.file_system_type = REFUSED_TYPES[i].type;
        child_run(&run, run_daemon, &config);
        check_refused(&run, TINED_EXIT_FAILED, REFUSED_TYPES[i].name, before);
        child_run(&run, check_daemon, &config);
        check_refused(&run, TINED_EXIT_FAILED, REFUSED_TYPES[i].name, before);
    }
    static const unsigned long ACCEPTED_TYPES[] = {OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC,
                                                   EXT4_SUPER_MAGIC};
    for (size_t i = 0; i < sizeof(ACCEPTED_TYPES) / sizeof(*ACCEPTED_TYPES); i++) {
        config.file_system_type = ACCEPTED_TYPES[i];
        config.idle_exit_ms = 1; // it starts, and goes
        child_run(&run, run_daemon, &config);
        CHECK_STR(run.errors, "");
        CHECK_EQ(run.code, TINED_EXIT_STOPPED);
    }
    free(before);
}

// A link to a directory is as private as who made it and what it names: /var/run is one.
TEST(the_directory_of_the_socket_may_be_a_link_but_not_others)
{
    char *link = in_test_dir("link"), *real = in_test_dir("real");
    CHECK_EQ(mkdir(real, 0700), 0);
    CHECK_EQ(symlink("real", link), 0);
    Config config = {.log_level = LOG_OFF, .is_ephemeral = true, .idle_exit_ms = 1};
    snprintf(config.socket, sizeof(config.socket), "%s/s", link);
    Run run;
    child_run(&run, run_daemon, &config);
    CHECK_STR(run.errors, "");
    CHECK_EQ(run.code, TINED_EXIT_STOPPED);

    CHECK_EQ(chmod(real, 0777), 0);
    char *before = directory_text(test_dir());
    child_run(&run, run_daemon, &config);
    check_refused(&run, TINED_EXIT_FAILED, "others can write to it", before);
    child_run(&run, check_daemon, &config);
    check_refused(&run, TINED_EXIT_FAILED, "others can write to it", before);
    if (geteuid() == 0) { // of another's link nobody knows what it names tomorrow
        CHECK_EQ(chmod(real, 0700), 0);
        CHECK_EQ(lchown(link, 65534, 65534), 0);
        free(before);
        before = directory_text(test_dir());
        child_run(&run, run_daemon, &config);
        check_refused(&run, TINED_EXIT_FAILED, "belongs to others", before);
    }
    free(before);
    free(link);
    free(real);
}

// A store as a later tine might write it: another format, and not the tables of ours.
static void make_newer_store(const char *directory)
{
    static const KvTableOptions TABLES[] = {{1, "a table of the future"}};
    CHECK_EQ(mkdir(directory, 0700), 0);
    KvOptions options = {.file.directory = directory, .tables = TABLES, .table_count = 1};
    options.sign = (KvSign){"meta", slice_of("format"), slice("\0\0\0\0\0\0\0\377", 8)};
    ErrorDetail detail;
    Kv *kv;
    KvTxn *txn;
    CHECK_EQ(kv_open(&options, &detail, &kv), ERROR_NONE);
    CHECK_EQ(kv_begin(kv, /* is_write= */ true, NULL, &txn), ERROR_NONE);
    CHECK_EQ(kv_put_sign(txn), ERROR_NONE);
    CHECK_EQ(kv_put(txn, 0, slice_of("key"), slice_of("value")), ERROR_NONE);
    CHECK_EQ(kv_commit(&txn), ERROR_NONE);
    kv_close(kv);
    char *lock;
    CHECK(asprintf(&lock, "%s/tine.lock", directory) > 0);
    write_file(lock, "", 0600);
    free(lock);
}

TEST(a_store_of_a_newer_format_is_refused_and_left_as_it_is)
{
    char *data = in_test_dir("data"), *socket = in_test_dir("s"), *lock = in_test_dir("s.lock");
    make_newer_store(data);
    Run run;
    tined_run(&run, (const char *[]){"--data", data, "--socket", socket, NULL}, NULL);
    CHECK_EQ(run.code, TINED_EXIT_FAILED); // the files of its locks are there now
    char *before = directory_text(data);
    tined_run(&run, (const char *[]){"--data", data, "--socket", socket, NULL}, NULL);
    printf("%s", run.errors);
    CHECK_EQ(run.code, TINED_EXIT_FAILED);
    CHECK(strstr(run.errors, "has storage format 255, but this program reads format") != NULL);
    CHECK_EQ(text_line_count(run.errors), 1);
    char *after = directory_text(data);
    CHECK_STR(after, before);
    CHECK(!file_exists(socket));
    CHECK(!file_exists(lock));
    free(lock);
    free(after);
    free(before);
    free(data);
    free(socket);
}

TEST(check_config_says_what_would_be_done_and_does_nothing)
{
    char *data = in_test_dir("data"), *socket = in_test_dir("run/s"), *line;
    const char *arguments[] = {"--check-config", "--data",          data, "--socket",
                               socket,           "--idle-exit=30m", NULL};
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
    CHECK_EQ(run.code, TINED_EXIT_USAGE);
    CHECK(strstr(run.errors, "TINE_EVENTS_MAX: 'many'") != NULL);
}

// Whoever says "false" must not get a store that keeps nothing.
TEST(a_flag_of_the_environment_is_0_or_1)
{
    Run run;
    const char *arguments[] = {"--check-config", NULL};
    tined_run(&run, arguments, (const char *[]){"TINE_EPHEMERAL=1", NULL});
    CHECK(strstr(run.output, "ephemeral=1\n") != NULL);
    tined_run(&run, arguments, (const char *[]){"TINE_EPHEMERAL=0", NULL});
    CHECK(strstr(run.output, "ephemeral=0\n") != NULL);
    tined_run(&run, arguments, (const char *[]){"TINE_EPHEMERAL=false", NULL});
    CHECK_EQ(run.code, TINED_EXIT_USAGE);
    CHECK(strstr(run.errors, "TINE_EPHEMERAL: 'false' is neither 0 nor 1") != NULL);
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
