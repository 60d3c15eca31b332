// tined on a disk that reports an error when what is relaxed is flushed: it ends with the store's
// exit code, whoever asked for the flush.

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "disk.h"
#include "process.h"

static int run_on_bad_disk(const void *context)
{
    // The daemon flushes its log when it is asked to, and when it stops.
    disk_fail((DiskFault){DISK_FLUSH_DATA, "*.log", EIO, 1, /* is_for_ever= */ false});
    return (int)daemon_run(context);
}

static int run_on_good_disk(const void *context)
{
    return (int)daemon_run(context);
}

// A daemon on a store that is there already.
static Sp start(Config *config, Child *child, int (*run_in_child)(const void *context))
{
    *config = (Config){
        .log_level = LOG_ERROR, .durability = DURABILITY_RELAXED, .flush_ms = FLUSH_MS_MAX};
    snprintf(config->data, sizeof(config->data), "%s/data", test_dir());
    snprintf(config->socket, sizeof(config->socket), "%s/run/s", test_dir());
    child_start(child, run_in_child, config);
    return sp_open_when_there(config->socket);
}

static void end(Child *child, Run *run)
{
    int status;
    CHECK_EQ(waitpid(child->pid, &status, 0), child->pid);
    child_end(child, status, run);
}

static void make_store(void)
{
    Config config;
    Child child;
    Run run;
    Sp sp = start(&config, &child, run_on_good_disk);
    sp_close(&sp);
    CHECK_EQ(kill(child.pid, SIGTERM), 0);
    end(&child, &run);
    CHECK_EQ(run.code, TINED_EXIT_STOPPED);
    CHECK_STR(run.errors, "");
}

TEST(a_last_flush_that_fails_is_told_by_the_exit_code)
{
    make_store();
    Config config;
    Child child;
    Run run;
    IdText session;
    Sp sp = start(&config, &child, run_on_bad_disk);
    new_session(sp, session);
    sp_close(&sp);
    CHECK_EQ(kill(child.pid, SIGTERM), 0);
    end(&child, &run);
    CHECK_EQ(run.code, TINED_EXIT_STORE);
    CHECK(strstr(run.errors, "the log cannot be written") != NULL);
    CHECK(strstr(run.errors, "/data/log/") != NULL);
}

TEST(a_request_that_waits_for_the_disk_is_told_and_the_daemon_ends)
{
    make_store();
    Config config;
    Child child;
    Run run;
    IdText session;
    Sp sp = start(&config, &child, run_on_bad_disk);
    new_session(sp, session);
    HealthRequest request = HEALTH_REQUEST__INIT;
    call_expect(sp, engine_request_synced(METHOD_HEALTH, &request), error_status(ERROR_IO));
    sp_close(&sp);
    end(&child, &run);
    CHECK_EQ(run.code, TINED_EXIT_STORE);
}
