// The test harness: each test registers itself and runs in a child process of its own.
//
//     TEST(renaming_a_deleted_session_is_refused)
//     {
//         CLEANUP(fixture_close) Fixture f = fixture_open();
//         CHECK_EQ(session_rename(…), ERROR_SESSION_DELETED);
//     }
//
// A failed check ends only its test. So does a crash, a sanitizer's report, a leak, or the guard
// that ends a test which hangs (guard.h), on a machine that may be busy: no test needs to know a
// time. What a test prints is shown only when it fails.
//
//     test_store                       all tests; a line for each that fails, then a summary
//     test_store rename                only those with "rename" in their name
//     test_store --list                their names
//     test_store --no-fork rename      in this process, without guard: for a debugger

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEST(name)                                                                                 \
    static void test_##name(void);                                                                 \
    __attribute__((constructor)) static void register_##name(void)                                 \
    {                                                                                              \
        static HarnessTest test = {#name, test_##name, NULL};                                      \
        harness_register(&test);                                                                   \
    }                                                                                              \
    static void test_##name(void)

#define CHECK(condition) harness_check((condition) ? true : false, #condition, __FILE__, __LINE__)

// Two integers, enums, booleans or characters. The expected one comes last.
#define CHECK_EQ(actual, expected)                                                                 \
    harness_check_equal((intmax_t)(actual), (intmax_t)(expected), #actual, #expected, __FILE__,    \
                        __LINE__)

// Two strings; either may be NULL.
#define CHECK_STR(actual, expected)                                                                \
    harness_check_text((actual), (expected), #actual, #expected, __FILE__, __LINE__)

// Two slices: anything with the members `bytes` and `size`.
#define CHECK_BYTES(actual, expected)                                                              \
    do {                                                                                           \
        const __auto_type actual_slice = (actual);                                                 \
        const __auto_type expected_slice = (expected);                                             \
        harness_check_bytes(actual_slice.bytes, actual_slice.size, expected_slice.bytes,           \
                            expected_slice.size, #actual, #expected, __FILE__, __LINE__);          \
    } while (0)

// Ends the test, which counts as neither passed nor failed.
#define SKIP(reason) harness_skip((reason), __FILE__, __LINE__)

// For waits that only keep a test from hanging, and must never end first on a busy machine: the
// guard ends a test that hangs.
enum { HARNESS_PATIENCE_MS = 3600 * 1000 };

// A directory for this test alone, under $TINE_TEST_DIR or /tmp. Removed after the test, whatever
// its end. The same one at each call.
const char *test_dir(void);

// `full`, or its $TINE_TEST_SCALE-th part (at least 1): long loops are cut under the sanitizers.
size_t test_scaled(size_t full);

// $TINE_TEST_SEED, or a random number that is shown when the test fails.
uint64_t test_seed(void);

// What the macros above are made of.

typedef struct HarnessTest {
    const char *name;
    void (*run)(void);
    struct HarnessTest *next;
} HarnessTest;

void harness_register(HarnessTest *test);
void harness_check(bool condition, const char *text, const char *file, int line);
void harness_check_equal(intmax_t actual, intmax_t expected, const char *actual_text,
                         const char *expected_text, const char *file, int line);
void harness_check_text(const char *actual, const char *expected, const char *actual_text,
                        const char *expected_text, const char *file, int line);
void harness_check_bytes(const void *actual, size_t actual_bytes, const void *expected,
                         size_t expected_bytes, const char *actual_text, const char *expected_text,
                         const char *file, int line);
__attribute__((noreturn)) void harness_skip(const char *reason, const char *file, int line);
