// Files of pi's that are imported again: grown, rewritten by pi, or after an import that was cut
// off.

#include <stdlib.h>
#include <string.h>

#include "pi/pi_file.h"
#include "pi_steps.h"
#include "shell.h"

// A line of which the message and the original fit in no request together.
TEST(pi_entry_of_many_megabytes_is_imported_and_comes_back)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    static const size_t SIZES[] = {9 * 1024 * 1024, PI_LINE_BYTES_MAX - 100};
    for (size_t i = 0; i < sizeof(SIZES) / sizeof(*SIZES); i++) {
        shell_ok(shell,
                 "{ echo '{\"type\":\"session\",\"version\":3,\"id\":\"large %zu\",\"cwd\":\"/p\"}'"
                 "; printf '{\"type\":\"custom\",\"customType\":\"t\",\"data\":\"'"
                 "; head -c %zu /dev/zero | tr '\\0' a"
                 "; echo '\",\"id\":\"1\",\"parentId\":null}'"
                 "; echo '{\"type\":\"custom\",\"customType\":\"t\",\"id\":\"2\",\"parentId\":"
                 "\"1\"}'; } >large.jsonl",
                 i, SIZES[i]);
        shell_ok(shell, "tine --url embedded:s import pi large.jsonl");
        shell_ok(shell, "tine --url embedded:s export pi @last | cmp - large.jsonl");
        shell_ok(shell, "tine --url embedded:s import --json pi large.jsonl");
        shell_shows(shell, "\"entries_new\": 0, \"entries_known\": 2");
    }
}

// Longer than any text of ours: the line has it whole.
TEST(pi_summary_over_4_mib_is_cut)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, "{ echo '{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/p\"}'"
                    "; printf '{\"type\":\"compaction\",\"id\":\"1\",\"parentId\":null,\"summary\":\"'"
                    "; head -c 5000000 /dev/zero | tr '\\0' a; echo '\"}'; } >long.jsonl");
    shell_ok(shell, "tine --url embedded:s import pi long.jsonl");
    shell_ok(shell, "tine --url embedded:s export pi @last | cmp - long.jsonl");
}
