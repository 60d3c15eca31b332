// Calls of providers on the command line: exports carry them, and the entries that they produced
// still name them.

#include "harness.h"
#include "shell.h"

TEST(exported_calls_come_back_with_the_entries_that_they_produced)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell,
             "tine --url embedded:from call CreateSession '{\"session\": {\"project_dir\": \"/p\", "
             "\"slug\": \"one\", \"model\": {\"provider\": \"a\", \"name\": \"b\"}}}' | "
             "jq -r .session.id > id && "
             "tine --url embedded:from call AppendExchange \"{\\\"session_id\\\": "
             "\\\"$(cat id)\\\", \\\"messages\\\": [{\\\"role\\\": \\\"user\\\"}, "
             "{\\\"role\\\": \\\"assistant\\\"}], \\\"call\\\": {\\\"request_id\\\": \\\"r1\\\", "
             "\\\"requested\\\": {\\\"provider\\\": \\\"a\\\", \\\"name\\\": \\\"b\\\"}, "
             "\\\"created_at\\\": 1700000000000, \\\"usage\\\": {\\\"cost_nano_usd\\\": 7}}}\" && "
             "tine --url embedded:from export --all > file && "
             "tine --url embedded:to import file && tine check to && "
             "tine --url embedded:to export --all > back");
    const char *same = "jq -r 'select(.call).call | [.request_id, .created_at, "
                       ".usage.cost_nano_usd] | @csv'";
    shell_ok(shell, "%s file > 1 && %s back > 2 && diff 1 2 && wc -l < 2", same, same);
    CHECK_STR(shell->output, "1\n");
    shell_ok(shell, "test $(jq -r 'select(.call).call.id' back) = "
                    "$(jq -r 'select(.entry.call_id).entry.call_id' back) && "
                    "test $(jq -r 'select(.call).call.id' back) != "
                    "$(jq -r 'select(.call).call.id' file)");
    shell_ok(shell, "tine --url embedded:to import file && "
                    "tine --url embedded:to export --all | cmp - back && "
                    "tine --url embedded:from import file");
}
