// What is installed is enough to build against, in C and in C++.

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "harness.h"

static char output[8192];

static int run(const char *format, const char *argument)
{
    char command[2048];
    int size = snprintf(command, sizeof(command), "exec 2>&1; ");
    CHECK(snprintf(command + size, sizeof(command) - (size_t)size, format, argument, argument,
                   argument) < (int)sizeof(command) - size);
    FILE *in = popen(command, "r");
    CHECK(in != NULL);
    size_t got = fread(output, 1, sizeof(output) - 1, in);
    output[got] = '\0';
    int status = pclose(in);
    CHECK(WIFEXITED(status));
    if (WEXITSTATUS(status)) puts(output);
    return WEXITSTATUS(status);
}

static bool is_sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#else
    return false;
#endif
}

TEST(the_installed_library_is_found_by_pkg_config)
{
    if (is_sanitized()) SKIP("a program without the sanitizer cannot load this library");
    CHECK_EQ(run(CMAKE " --install " BUILD_DIR " --component libtine --prefix %s/usr", test_dir()),
             0);
    CHECK_EQ(run("cd %s && export PKG_CONFIG_PATH=$(dirname $(find %s/usr -name libtine.pc)) && "
                 "cc -std=c99 -Wall -Werror " SOURCE_DIR "/client/c/examples/hello.c "
                 "$(pkg-config --cflags --libs libtine) -o hello && "
                 "LD_LIBRARY_PATH=$(pkg-config --variable=libdir libtine) ./hello",
                 test_dir()),
             0);
    CHECK(strstr(output, "message ") && strstr(output, " in session "));
}

TEST(the_library_shows_its_own_names_only)
{
    CHECK_EQ(run("nm -D --defined-only '%s' | grep -c ' T tine_append_message$'", LIBRARY), 0);
    CHECK_STR(output, "1\n");
    CHECK_EQ(run("nm -D --defined-only '%s' | awk '$3 !~ /^tine_/ { print $3 }'", LIBRARY), 0);
    CHECK_STR(output, "");
}

TEST(the_headers_compile_as_cxx)
{
    if (run("command -v g++ || command -v clang++ || true%.0s", "") != 0 || !*output) {
        SKIP("there is no C++ compiler");
    }
    output[strcspn(output, "\n")] = '\0';
    char compiler[256];
    snprintf(compiler, sizeof(compiler), "%.255s", output);
    CHECK_EQ(run("'%s' -std=c++17 -Wall -Wextra -Werror -fsyntax-only "
                 "-isystem " GENERATED_DIR " -I" SOURCE_DIR "/client/c/include " SOURCE_DIR
                 "/tests/client/cxx/include.cc",
                 compiler),
             0);
}
