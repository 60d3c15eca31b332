// Calls of providers on the command line: exports contain them, and entries still refer to them.

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

TEST(cost_of_calls_is_summed_by_the_store)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell,
             "export TINE_URL=embedded:store; "
             "tine call CreateSession '{\"session\": {\"project_dir\": \"/p\", "
             "\"slug\": \"one\", \"model\": {\"provider\": \"a\", \"name\": \"b\"}}}' | "
             "jq -r .session.id > id && for day in 0 0 1; do "
             "tine call RecordCall \"{\\\"session_id\\\": \\\"$(cat id)\\\", \\\"call\\\": "
             "{\\\"requested\\\": {\\\"provider\\\": \\\"a\\\", \\\"name\\\": \\\"m$day\\\"}, "
             "\\\"created_at\\\": $((1700000000000 + day * 86400000)), "
             "\\\"usage\\\": {\\\"cost_nano_usd\\\": 7}}}\"; done");
    shell_ok(shell, "tine --url embedded:store cost --calls --by day --json | "
                    "jq -c '[.day, .own.cost_nano_usd]'");
    CHECK_STR(shell->output, "[\"2023-11-14\",14]\n[\"2023-11-15\",7]\n");
    shell_ok(shell, "tine --url embedded:store cost one --calls --by model --json | "
                    "jq -c '[.model, .own.cost_nano_usd]'");
    CHECK_STR(shell->output, "[\"a/m0\",14]\n[\"a/m1\",7]\n");
    shell_ok(shell, "test $(tine --url embedded:store cost --calls --json | jq -r .session_id) = "
                    "$(cat id)");
    shell_fails(shell, 2, "tine --url embedded:store cost --by day");
}
