// tined walks the pages of a store that may have met a reset, and offers direct reads after that.

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "shell.h"

// The store of a tined that was stopped, and then lost what is known about its last walk.
static Shell *shell_with_unwalked_store(void)
{
    Shell *shell = shell_open();
    shell_tined_start(shell);
    shell_ok(shell, "tine new -s one && for i in $(seq 60); do tine append one "
                    "\"$(head -c 3000 /dev/zero | tr '\\0' x)\" || exit 1; done >/dev/null; "
                    "tine call Describe | jq -e .direct_reads.directory");
    shell_tined_stop(shell);
    shell_ok(shell, "rm data/tine/walked.note");
    return shell;
}

TEST(direct_reads_are_offered_after_the_walk)
{
    CLEANUP(shell_close) Shell *shell = shell_with_unwalked_store();
    shell_tined_start(shell);
    shell_ok(shell, "until tine call Describe | jq -e .direct_reads.directory; do :; done");
    shell_tined_stop(shell);
    shell_tined_start(shell); // nothing happened in between
    shell_ok(shell, "tine call Describe | jq -e .direct_reads.directory");
}

// Overflow pages, which nothing reads when a store is opened.
static void damage_overflow_pages(void)
{
    enum { PAGE = 4096, FLAGS_AT = 10, OVERFLOW = 4 };
    char path[600];
    struct stat status;
    unsigned count = 0;
    snprintf(path, sizeof(path), "%s/data/tine/data.mdb", test_dir());
    int file = open(path, O_RDWR);
    CHECK(file >= 0 && fstat(file, &status) == 0);
    for (off_t at = 2 * PAGE; at < status.st_size; at += PAGE) {
        uint16_t flags, bad = 0xff;
        CHECK_EQ(pread(file, &flags, sizeof(flags), at + FLAGS_AT), sizeof(flags));
        if (flags != OVERFLOW) continue;
        CHECK_EQ(pwrite(file, &bad, sizeof(bad), at + FLAGS_AT), sizeof(bad));
        count++;
    }
    close(file);
    CHECK(count > 10);
}

TEST(direct_reads_are_not_offered_for_a_damaged_store)
{
    CLEANUP(shell_close) Shell *shell = shell_with_unwalked_store();
    damage_overflow_pages();
    shell_ok(shell, "tined --log-file $PWD/log & pid=$!; "
                    "until grep -h 'the store is damaged' log; do :; done; "
                    "grep -c 'a page is damaged.*page [0-9]*: it is not the overflow page' log && "
                    "tine --no-start call Describe | jq -e '.direct_reads == null' && "
                    "tine --no-start ls | cut -f6; code=$?; kill $pid; wait $pid; exit $code");
    shell_shows(shell, "one\n");
    shell_tined_start(shell); // it stays so
    shell_ok(shell, "tine call Describe | jq -e '.direct_reads == null'");
}
