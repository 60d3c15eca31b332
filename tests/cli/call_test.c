// call, describe, stats and metrics, with a real tined.

#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "shell.h"
#include "tine/v1/store.pb-c.h"

static const char CREATE[] = "'{\"session\": {\"project_dir\": \"/p\", \"slug\": \"one\", "
                             "\"model\": {\"provider\": \"a\", \"name\": \"b\"}}}'";

TEST(call_takes_json_from_an_argument_a_file_and_standard_input)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_tined_start(shell);
    shell_ok(shell,
             "tine call CreateSession %s | jq -e '.session.kind == \"SESSION_KIND_PRIMARY\" "
             "and .session.entry_count == 0'",
             CREATE);
    shell_ok(shell, "echo '{\"slug\": \"one\"}' > file && tine call ResolveSession @file > 1 && "
                    "tine call ResolveSession - < file > 2 && cmp 1 2 && "
                    "tine call tine.v1.StoreService/ResolveSession '{\"slug\": \"one\"}' | cmp - 1 "
                    "&& tine call resolvesession @file | cmp - 1 && jq -e .sessions[0].id 1");
    shell_ok(shell, "tine call Health | jq -e .ready");
}

// A call with an empty request must get an answer of the server, success or not.
TEST(call_reaches_every_call)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_tined_start(shell);
    const ProtobufCServiceDescriptor *service = &tine__v1__store_service__descriptor;
    for (unsigned i = 0; i < service->n_methods; i++) {
        const char *name = service->methods[i].name;
        if (strcmp(name, "WatchEvents") == 0) continue; // never ends
        shell_ok(shell, "tine --no-start call %s; code=$?; [ $code -le 1 -o $code = 3 ]", name);
        CHECK(!strstr(shell->errors, "UNIMPLEMENTED") && !strstr(shell->errors, "UNAVAILABLE"));
    }
}

TEST(call_says_what_is_wrong_and_where)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_fails(shell, 2, "tine call GetSession '{\"sesion_id\": 1}'");
    shell_says(shell, "tine: the request: line 1, column 2: GetSessionRequest has no field "
                      "\"sesion_id\"; did you mean \"session_id\"?");
    shell_fails(shell, 2, "printf '{\\n  \"limit\": true\\n}' > f; tine call ListSessions @f");
    shell_says(shell, "f: line 2, column 12: limit: expected a number, not true or false");
    shell_fails(shell, 2, "tine call GetSesion");
    shell_says(shell, "there is no call 'GetSesion'; did you mean GetSession?");
    shell_fails(shell, 1, "tine call GetSession @nowhere");
    shell_says(shell, "cannot read nowhere");
    shell_fails(shell, 2, "tine call");
    shell_fails(shell, 4, "tine --no-start call Health");
    shell_tined_start(shell);
    shell_fails(shell, 3, "tine call GetSession '{\"session_id\": \"%026d\"}'", 1);
    shell_says(shell, "SESSION_NOT_FOUND: ");
    shell_fails(shell, 1, "tine call GetSession");
    shell_says(shell, "INVALID_ARGUMENT: session_id");
}

TEST(a_write_called_twice_with_one_operation_id_runs_once)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_tined_start(shell);
    shell_ok(shell,
             "tine call CreateSession --operation-id x %s | jq .session.id > 1 && "
             "tine call CreateSession --operation-id x %s | jq .session.id | cmp - 1 && "
             "tine call ListSessions | jq -e '.sessions | length == 1'",
             CREATE, CREATE);
}

TEST(describe_shows_calls_messages_and_enums_of_here_and_of_the_server)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, "tine describe");
    shell_shows(shell, "  rpc GetSession(GetSessionRequest) returns (GetSessionResponse);\n");
    shell_shows(shell, "  rpc RenameSession(RenameSessionRequest) returns "
                       "(RenameSessionResponse); // writes\n");
    shell_ok(shell, "tine describe GetMessage");
    shell_shows(shell, "message GetMessageRequest {\n  oneof by {\n    string message_id = 1;\n"
                       "    SessionExternal session_external = 2;\n  }\n}\n");
    shell_ok(shell, "tine describe Role");
    shell_shows(shell, "  ROLE_USER = 1;\n");
    shell_ok(shell, "tine describe --json | jq -e '.calls | map(select(.call == \"GetSession\")) "
                    "| .[0].writes == false'");
    shell_ok(shell, "tine describe Part --json | "
                    "jq -e '.fields | map(select(.oneof == \"kind\")) | length == 7'");
    shell_ok(shell, "tine describe Role --json | jq -e '.values[1].name == \"ROLE_USER\"'");
    shell_ok(shell, "tine describe RenameSession --json | jq -e '.writes and .path == "
                    "\"/tine.v1.StoreService/RenameSession\"'");
    shell_fails(shell, 3, "tine describe Parts");
    shell_says(shell, "did you mean Part?");
    shell_tined_start(shell);
    shell_ok(shell, "tine describe > 1 && tine describe --server | cmp - 1");
    shell_ok(shell, "tine describe --limits --json | jq -e .request_bytes");
    shell_fails(shell, 4, "tine --no-start --socket nowhere describe --server");
}

TEST(stats_and_metrics_count_what_was_called)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_tined_start(shell);
    shell_ok(shell, "for i in 1 2 3; do tine call ListSessions > /dev/null; done; "
                    "! tine call GetSession 2> /dev/null; tine stats");
    shell_shows(shell, "writes queued ");
    shell_shows(shell, "\nListSessions  ");
    shell_ok(shell, "tine stats --json | "
                    "jq -e '.methods[] | select(.name == \"ListSessions\") | .calls == 3'");
    shell_ok(shell, "tine metrics");
    shell_shows(shell, "\ntine_rpc_requests_total{method=\"ListSessions\"} 3\n");
    shell_shows(shell, "\ntine_rpc_errors_total{method=\"GetSession\"} 1\n");
    shell_shows(shell,
                "\ntine_rpc_duration_seconds_bucket{method=\"ListSessions\",le=\"+Inf\"} 3\n");
    shell_shows(shell, "\ntine_rpc_duration_seconds_count{method=\"ListSessions\"} 3\n");
    shell_shows(shell, "\ntine_ready 1\n");
    // Each line is a comment or a sample, and each family has HELP and TYPE once.
    shell_ok(shell, "tine metrics > m && ! grep -Evq '^# (HELP|TYPE) tine_[a-z_]+ .+$|"
                    "^tine_[a-z_]+(\\{[a-z]+=\"[^\"]*\"(,[a-z]+=\"[^\"]*\")*\\})? [0-9.]+$' m && "
                    "[ -z \"$(grep -o '^# HELP [a-z_]*' m | sort | uniq -d)\" ] && "
                    "[ $(grep -c '^# HELP' m) = $(grep -c '^# TYPE' m) ]");
}

// tine starts a tined, which takes its settings from the environment.
TEST(tined_keeps_as_many_operations_as_it_is_told)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell,
             "export TINE_OPERATIONS_MAX=2 TINE_IDLE_EXIT=1s && "
             "create() { tine call CreateSession %s --operation-id op-$1; } && "
             "for i in 1 2 3; do create $i >$i || exit; done && "
             "create 2 | cmp - 2 && create 3 | cmp - 3 && ! create 1 | cmp -s - 1",
             CREATE);
}
