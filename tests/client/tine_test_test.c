// tine_test: a tined for a test.

#include "tine_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "steps.h"

static const TineTestOptions OURS = {.tined = TINED};

static TineTest *start_ok(const TineTestOptions *options)
{
    TineTest *daemon = NULL;
    TineStatus status;
    int code = tine_test_start(options, &status, &daemon);
    if (code) puts(status.message);
    CHECK_EQ(code, STATUS_OK);
    return daemon;
}

TEST(a_test_has_a_store_of_its_own)
{
    TineTest *one = start_ok(&OURS), *other = start_ok(&OURS);
    CHECK(strcmp(tine_test_url(one), tine_test_url(other)) != 0);
    CLEANUP(closep) Tine *mine = open_ok(tine_test_url(one));
    CLEANUP(closep) Tine *theirs = open_ok(tine_test_url(other));
    Id session = session_new(mine);
    append_text(mine, session.text, "hello");
    TineStatus status;
    TineCallOptions options = {.out_status = &status};
    char answer[ANSWER_BYTES_MAX];
    CHECK_EQ(ask(theirs, &options, session.text, answer), STATUS_NOT_FOUND);
    CHECK_EQ(tine_test_end(one, &status), STATUS_OK);
    CHECK_EQ(tine_test_end(other, NULL), STATUS_OK);
}

TEST(a_tined_that_was_killed_is_started_again_on_its_store)
{
    TineTest *daemon = start_ok(&OURS);
    CLEANUP(closep) Tine *tine = open_ok(tine_test_url(daemon));
    Id session = session_new(tine);
    append_text(tine, session.text, "m1");
    tine_test_kill(daemon);
    CHECK_EQ(tine_test_restart(daemon, NULL), STATUS_OK);
    CHECK_STR(history_of(tine, session.text), "m1");
    CHECK_EQ(tine_test_stop(daemon, NULL), STATUS_OK);
    CHECK_EQ(tine_test_stop(daemon, NULL), STATUS_OK); // none runs
    CHECK_EQ(tine_test_end(daemon, NULL), STATUS_OK);
}

TEST(nothing_is_left_of_a_test)
{
    char directory[256];
    TineTest *daemon = start_ok(&OURS);
    snprintf(directory, sizeof(directory), "%s", tine_test_url(daemon) + strlen("ipc://"));
    *strrchr(directory, '/') = '\0';
    CHECK_EQ(access(directory, F_OK), 0);
    CHECK_EQ(tine_test_end(daemon, NULL), STATUS_OK);
    CHECK(access(directory, F_OK) != 0);
}

TEST(the_program_comes_from_the_environment_and_its_settings_do_not)
{
    CHECK_EQ(setenv("TINED", TINED, 1), 0);
    CHECK_EQ(setenv("TINE_LOG_LEVEL", "loud", 1), 0); // tined would refuse it
    TineTest *daemon = start_ok(NULL);
    CHECK_EQ(tine_test_end(daemon, NULL), STATUS_OK);
    unsetenv("TINE_LOG_LEVEL");
    unsetenv("TINED");
}

TEST(the_example_of_a_test_passes)
{
    CHECK_EQ(setenv("TINED", TINED, 1), 0);
    FILE *out = popen(AGENT_TEST " 2>&1", "r");
    char said[256] = "";
    CHECK(out != NULL);
    CHECK(fgets(said, sizeof(said), out) != NULL);
    CHECK_STR(said, "ok: /a has 2 sessions\n");
    CHECK_EQ(pclose(out), 0);
    unsetenv("TINED");
}

TEST(a_temporary_directory_with_a_long_path_is_not_used)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%0100d", test_dir(), 0);
    const char *before = getenv("TMPDIR");
    char *kept = before ? strdup(before) : NULL;
    CHECK_EQ(setenv("TMPDIR", path, 1), 0);
    TineTest *daemon = start_ok(&OURS);
    CHECK(strncmp(tine_test_url(daemon), "ipc:///tmp/", 11) == 0);
    CHECK_EQ(tine_test_end(daemon, NULL), STATUS_OK);
    CHECK_EQ(kept ? setenv("TMPDIR", kept, 1) : unsetenv("TMPDIR"), 0);
    free(kept);
}

TEST(a_tined_that_cannot_run_says_why)
{
    TineStatus status;
    TineTest *daemon = NULL;
    CHECK_EQ(tine_test_start(&(TineTestOptions){.tined = "/no/such/tined"}, &status, &daemon),
             STATUS_NOT_FOUND);
    CHECK(strstr(status.message, "cannot start /no/such/tined: No such file"));
    static const char *const WRONG[] = {"--log-level", "loud", NULL};
    CHECK_EQ(tine_test_start(&(TineTestOptions){.tined = TINED, .arguments = WRONG}, &status,
                             &daemon),
             STATUS_UNAVAILABLE);
    CHECK(strstr(status.message, "tined ended before it was ready; it said: "));
    CHECK(strstr(status.message, "loud"));
    CHECK(daemon == NULL);
}
