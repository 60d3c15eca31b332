// The code generator: its output is compared with golden files, byte for byte, and what must not
// compile or link is given to the C compiler.
//
// To accept a change of the output, copy the new file over the golden one: the failed test shows
// the difference and where both are.

#include "harness.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define GOLDEN SOURCE_DIR "/tests/codegen/golden"

enum { COMMAND_BYTES_MAX = 8192, OUTPUT_BYTES_MAX = 16384, EXIT_BAD_INPUT = 1, EXIT_USAGE = 2 };

// What the last command printed.
static char output[OUTPUT_BYTES_MAX];

__attribute__((format(printf, 1, 2))) static int run(const char *format, ...);
static void file_write(const char *name, const char *text);
static void golden_generate(void);
static int descriptor_set_make(const char *proto);
static int generate(const char *options);
static int handlers_build(const char *options);

TEST(the_output_is_the_golden_one)
{
    static const char *const FILES[] = {
        "names.h",      "fields.h",     "tine_reasons.h",   "dispatch_table.h", "dispatch_table.c",
        "tine_calls.h", "tine_calls.c", "descriptor_set.h", "descriptor_set.c",
    };
    golden_generate();
    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++) {
        int difference = run("diff -u " GOLDEN "/%s %s/%s", FILES[i], test_dir(), FILES[i]);
        if (difference) puts(output);
        CHECK_EQ(difference, 0);
    }
}

TEST(the_generated_table_finds_and_runs_the_handlers)
{
    golden_generate();
    CHECK_EQ(handlers_build(""), 0);
    CHECK_EQ(run("%s/handlers", test_dir()), 0);
}

TEST(a_call_without_a_handler_does_not_link)
{
    golden_generate();
    CHECK(handlers_build("-DWITHOUT_HANDLER") != 0);
    CHECK(strstr(output, "undefined reference to `handle_burn_book'") ||
          strstr(output, "undefined symbol: handle_burn_book"));
}

TEST(a_handler_without_a_call_does_not_compile)
{
    golden_generate();
    CHECK(handlers_build("-DWITH_HANDLER_OF_NO_CALL") != 0);
    CHECK(strstr(output, "no previous prototype for") && strstr(output, "handle_steal_book"));
}

TEST(an_unknown_service_is_named)
{
    golden_generate();
    CHECK_EQ(generate("--service sample.v1.Attic"), EXIT_BAD_INPUT);
    CHECK_STR(output, "tine-codegen: the descriptor set has no service sample.v1.Attic\n");
    CHECK_EQ(generate("--service Attic"), EXIT_BAD_INPUT);
    CHECK_STR(output, "tine-codegen: the service 'Attic' has no package\n");
}

TEST(a_missing_descriptor_set_is_named)
{
    CHECK_EQ(generate("--service sample.v1.ShelfService"), EXIT_BAD_INPUT);
    CHECK(strstr(output, "tine-codegen: cannot read ") && strstr(output, "No such file"));
}

TEST(a_descriptor_set_cut_off_anywhere_is_refused)
{
    golden_generate();
    CHECK_EQ(run("stat -c %%s %s/set", test_dir()), 0);
    size_t size = strtoul(output, NULL, 10);
    CHECK_EQ(run("cp %s/set %s/whole", test_dir(), test_dir()), 0);
    size_t step = size / test_scaled(100);
    for (size_t cut = 0; cut < size; cut += step) {
        CHECK_EQ(run("head -c %zu %s/whole > %s/set", cut, test_dir(), test_dir()), 0);
        CHECK_EQ(generate("--service sample.v1.ShelfService"), EXIT_BAD_INPUT);
        CHECK(strncmp(output, "tine-codegen: ", strlen("tine-codegen: ")) == 0);
    }
}

TEST(calls_with_the_same_handler_are_refused)
{
    CHECK_EQ(descriptor_set_make("message M {}\n"
                                 "service S {\n"
                                 "  rpc GetURL(M) returns (M);\n"
                                 "  rpc GetUrl(M) returns (M);\n"
                                 "}\n"),
             0);
    CHECK_EQ(generate("--service test.S"), EXIT_BAD_INPUT);
    CHECK_STR(output, "tine-codegen: the calls GetURL and GetUrl would have one handler, "
                      "handle_get_url\n");
}

TEST(a_call_named_count_is_refused)
{
    CHECK_EQ(descriptor_set_make("message M {} service S { rpc Count(M) returns (M); }\n"), 0);
    CHECK_EQ(generate("--service test.S"), EXIT_BAD_INPUT);
    CHECK_STR(output, "tine-codegen: no call can be named Count: METHOD_COUNT is taken\n");
}

TEST(a_stream_of_requests_is_refused)
{
    CHECK_EQ(descriptor_set_make("message M {}\n"
                                 "service S { rpc Put(stream M) returns (M); }\n"),
             0);
    CHECK_EQ(generate("--service test.S"), EXIT_BAD_INPUT);
    CHECK_STR(output, "tine-codegen: test.S.Put: no client can stream its requests\n");
}

TEST(a_service_without_a_call_is_refused)
{
    CHECK_EQ(descriptor_set_make("service S {}\n"), 0);
    CHECK_EQ(generate("--service test.S"), EXIT_BAD_INPUT);
    CHECK_STR(output, "tine-codegen: the service test.S has no call\n");
}

TEST(messages_of_another_package_are_refused)
{
    CHECK_EQ(descriptor_set_make("import \"google/protobuf/empty.proto\";\n"
                                 "message M {}\n"
                                 "service S { rpc Get(M) returns (google.protobuf.Empty); }\n"),
             0);
    CHECK_EQ(generate("--service test.S"), EXIT_BAD_INPUT);
    CHECK_STR(output, "tine-codegen: test.S.Get: google.protobuf.Empty is not a message of package "
                      "test\n");
}

TEST(enum_values_with_the_same_plain_name_are_refused)
{
    CHECK_EQ(descriptor_set_make("message M { enum Kind { NONE = 0; } }\n"
                                 "enum State { NONE = 0; }\n"
                                 "service S { rpc Get(M) returns (M); }\n"),
             0);
    CHECK_EQ(generate("--service test.S"), EXIT_BAD_INPUT);
    CHECK_STR(output,
              "tine-codegen: the enums test.State and test.M.Kind both have a value NONE\n");
}

TEST(fields_with_the_same_constant_are_refused)
{
    CHECK_EQ(descriptor_set_make("message Big { string part_id = 1; }\n"
                                 "message BigPart { string id = 1; }\n"
                                 "service S { rpc Get(Big) returns (Big); }\n"),
             0);
    CHECK_EQ(generate("--service test.S"), EXIT_BAD_INPUT);
    CHECK_STR(output, "tine-codegen: test.BigPart.id and another field would both be "
                      "FIELD_BIG_PART_ID in C\n");
}

TEST(renames_must_name_a_type_and_leave_names_apart)
{
    golden_generate();
    CHECK_EQ(generate("--service sample.v1.ShelfService --rename Eror=ErrorInfo"), EXIT_BAD_INPUT);
    CHECK_STR(output, "tine-codegen: --rename Eror=ErrorInfo: package sample.v1 has no type of "
                      "that name\n");
    CHECK_EQ(generate("--service sample.v1.ShelfService --rename Error=Book"), EXIT_BAD_INPUT);
    CHECK_STR(output, "tine-codegen: sample.v1.Book and sample.v1.Error would both be Book in C\n");
}

TEST(a_trait_must_name_a_call)
{
    golden_generate();
    CHECK_EQ(generate("--service sample.v1.ShelfService --broadcast RingBell"), EXIT_BAD_INPUT);
    CHECK_STR(output, "tine-codegen: the service sample.v1.ShelfService has no call RingBell\n");
}

TEST(wrong_options_print_the_usage)
{
    CHECK_EQ(generate("--servce sample.v1.ShelfService"), EXIT_USAGE);
    CHECK(strstr(output, "tine-codegen: unknown option '--servce'\nusage: "));
    CHECK_EQ(generate("--service"), EXIT_USAGE);
    CHECK(strstr(output, "tine-codegen: --service needs a value\nusage: "));
    CHECK_EQ(generate(""), EXIT_USAGE);
    CHECK(strstr(output, "--descriptor-set, --service and --out are needed\nusage: "));
    CHECK_EQ(generate("--rename =Name"), EXIT_USAGE);
    CHECK(strstr(output, "--rename wants PROTO_TYPE=C_NAME, not '=Name'\nusage: "));
}

TEST(an_output_that_cannot_be_written_is_named)
{
    golden_generate();
    CHECK_EQ(generate("--service sample.v1.ShelfService --out /nowhere"), EXIT_BAD_INPUT);
    CHECK_STR(output, "tine-codegen: cannot write /nowhere/names.h: No such file or directory\n");
    CHECK_EQ(run("mkdir %s/full && ln -s /dev/full %s/full/names.h", test_dir(), test_dir()), 0);
    CHECK_EQ(run(CODEGEN " --descriptor-set %s/set --service sample.v1.ShelfService --out %s/full",
                 test_dir(), test_dir()),
             EXIT_BAD_INPUT);
    CHECK(strstr(output, "names.h failed: No space left on device\n"));
}

// Runs a command line, keeps what it prints in `output` and returns its exit code.
static int run(const char *format, ...)
{
    static const char PREFIX[] = "exec 2>&1; ";
    char command[COMMAND_BYTES_MAX];
    memcpy(command, PREFIX, sizeof PREFIX);
    size_t room = sizeof command - strlen(PREFIX);
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(command + strlen(PREFIX), room, format, arguments);
    va_end(arguments);
    CHECK(length > 0 && (size_t)length < room);

    FILE *in = popen(command, "r");
    CHECK(in != NULL);
    size_t size = fread(output, 1, sizeof output - 1, in);
    output[size] = '\0';
    while (fgetc(in) != EOF) {
    }
    int status = pclose(in);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void file_write(const char *name, const char *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", test_dir(), name);
    FILE *out = fopen(path, "w");
    CHECK(out != NULL);
    CHECK(fputs(text, out) >= 0);
    CHECK_EQ(fclose(out), 0);
}

// Everything from golden/*.proto into the test's directory.
static void golden_generate(void)
{
    CHECK_EQ(run(PROTOC " --proto_path=" GOLDEN " --include_imports --include_source_info "
                        "--descriptor_set_out=%s/set shelf.proto shelf_types.proto",
                 test_dir()),
             0);
    int code = generate("--service sample.v1.ShelfService --rename Error=ErrorInfo "
                        "--broadcast BurnBook --needs-server GetISBN");
    if (code) puts(output);
    CHECK_EQ(code, 0);
}

// Makes the descriptor set of one file of package "test".
static int descriptor_set_make(const char *proto)
{
    char text[COMMAND_BYTES_MAX];
    snprintf(text, sizeof text, "syntax = \"proto3\";\npackage test;\n%s", proto);
    file_write("test.proto", text);
    int code = run(PROTOC " --proto_path=%s --include_imports --descriptor_set_out=%s/set "
                          "test.proto",
                   test_dir(), test_dir());
    if (code) puts(output);
    return code;
}

// Options given twice count the second time. Without any the needed ones are missing.
static int generate(const char *options)
{
    if (!options[0]) return run(CODEGEN);
    return run(CODEGEN " --descriptor-set %s/set --out %s %s", test_dir(), test_dir(), options);
}

static int handlers_build(const char *options)
{
    const char *directory = test_dir();
    CHECK_EQ(run(PROTOC_C " --proto_path=" GOLDEN " --c_out=%s shelf.proto shelf_types.proto",
                 directory),
             0);
    return run("cd %s && " C_COMPILER " -std=gnu17 -Wall -Wextra -Werror -Wmissing-prototypes %s "
               "-I. -I" SOURCE_DIR "/server -o handlers dispatch_table.c descriptor_set.c "
               "shelf.pb-c.c shelf_types.pb-c.c " SOURCE_DIR "/tests/codegen/link/handlers.c "
               "$(pkg-config --cflags --libs libprotobuf-c)",
               directory, options);
}
