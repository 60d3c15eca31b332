// What is installed is enough to build against, in C and in C++, with pkg-config and with CMake.

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/error.h"
#include "harness.h"
#include "tined.h"

static char output[8192];

// Runs a shell command in which %s is the test's directory.
static int run(const char *format)
{
    const char *dir = test_dir();
    char command[4096];
    int size = snprintf(command, sizeof(command), "exec 2>&1; set -e; ");
    CHECK(snprintf(command + size, sizeof(command) - (size_t)size, format, dir, dir, dir, dir) <
          (int)sizeof(command) - size);
    FILE *in = popen(command, "r");
    CHECK(in != NULL);
    size_t got = fread(output, 1, sizeof(output) - 1, in);
    output[got] = '\0';
    while (getc(in) != EOF)
        continue;
    int status = pclose(in);
    CHECK(WIFEXITED(status));
    if (WEXITSTATUS(status)) puts(output);
    return WEXITSTATUS(status);
}

static void install(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    SKIP("a program without the sanitizer cannot load this library");
#endif
    CHECK_EQ(run("DESTDIR=%s " CMAKE " --install " BUILD_DIR
                 " --component libtine --prefix /opt/tine >/dev/null"),
             0);
}

// Runs the two programs on a store in the process and on a daemon.
static void run_programs(const char *library_path)
{
    CLEANUP(tined_end) Tined tined = {.pid = 0};
    tined_start(&tined);
    const char *urls[] = {"embedded::memory:", tined.url};
    for (size_t i = 0; i < 2; i++) {
        char command[2048];
        CHECK(snprintf(command, sizeof(command), "cd %%s && %s ./hello '%s'", library_path,
                       urls[i]) < (int)sizeof(command));
        CHECK_EQ(run(command), 0);
        CHECK(strstr(output, "message ") && strstr(output, " in session "));
        CHECK(snprintf(command, sizeof(command), "cd %%s && %s ./journal '%s'", library_path,
                       urls[i]) < (int)sizeof(command));
        CHECK_EQ(run(command), 0);
        CHECK_STR(output, "Hello.\nAgain.\n");
    }
    tined_stop(&tined);
}

TEST(the_installed_library_is_found_by_pkg_config)
{
    install();
    CHECK_EQ(run("cd %s; export PKG_CONFIG_PATH=$(dirname $(find . -name libtine.pc)); "
                 "cc -std=c99 -Wall -Wextra -Werror " SOURCE_DIR "/client/c/examples/hello.c "
                 "$(pkg-config --cflags --libs libtine) -o hello; "
                 "cc -std=c99 -Wall -Wextra -Werror " SOURCE_DIR "/client/c/examples/agent_test.c "
                 "$(pkg-config --cflags --libs libtine) -o agent_test; "
                 "g++ -std=c++17 -Wall -Wextra -Werror " SOURCE_DIR
                 "/tests/client/package/journal.cc "
                 "$(pkg-config --cflags --libs libtine) -o journal"),
             0);
    run_programs("LD_LIBRARY_PATH=$(dirname $(find . -name libtine.so))");
}

TEST(the_installed_library_is_found_by_cmake)
{
    install();
    CHECK_EQ(run("cd %s; " CMAKE " -S " SOURCE_DIR "/tests/client/package -B build "
                 "-DCMAKE_PREFIX_PATH=%s/opt/tine -DEXAMPLES=" SOURCE_DIR "/client/c/examples; "
                 "" CMAKE " --build build; mv build/hello build/journal ."),
             0);
    run_programs("env"); // CMake has written the library's place into the programs
}

TEST(cmake_finds_no_version_that_does_not_fit)
{
    install();
    CHECK_EQ(run("cd %s; mkdir other; "
                 "sed 's/find_package(tine [0-9.]*/find_package(tine 99.0/' " SOURCE_DIR
                 "/tests/client/package/CMakeLists.txt >other/CMakeLists.txt; "
                 "! " CMAKE " -S other -B build -DCMAKE_PREFIX_PATH=%s/opt/tine"),
             0);
    CHECK(strstr(output, "tineConfig.cmake, version: 0.1"));
}

TEST(no_header_is_missing_and_each_compiles_alone)
{
    install();
    CHECK_EQ(run("cd %s/opt/tine/include; for header in $(find . -name '*.h'); do "
                 "printf '#include \"%%s\"\\n' $header >%s/one.c; cp %s/one.c %s/one.cc; "
                 "cc -std=c99 -Wall -Wextra -Werror -I. -fsyntax-only ../../../one.c; "
                 "g++ -std=c++17 -Wall -Wextra -Werror -I. -fsyntax-only ../../../one.cc; "
                 "done; find . -name '*.h' | sort"),
             0);
    CHECK_STR(output, "./tine.h\n./tine/v1/records.pb-c.h\n./tine/v1/rpc.pb-c.h\n"
                      "./tine/v1/store.pb-c.h\n./tine_calls.h\n./tine_reasons.h\n./tine_test.h\n");
}

TEST(the_library_shows_its_own_names_only)
{
    CHECK_EQ(run("nm -D --defined-only " LIBRARY " | grep -c ' T tine_append_message$'"), 0);
    CHECK_STR(output, "1\n");
    CHECK_EQ(run("nm -D --defined-only " LIBRARY " | awk '$3 !~ /^tine_/ { print $3 }'"), 0);
    CHECK_STR(output, "");
}
