// memory, todo, cost, tree, watch, top, ping, version.

#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "shell.h"
#include "terminal.h"

static Shell *open_with_session(void)
{
    Shell *shell = shell_open();
    shell_tined_start(shell);
    shell_ok(shell, "tine new -s plan -m anthropic/claude");
    return shell;
}

TEST(memory_is_added_listed_and_forgotten)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "tine memory add plan 'a fact' -t title >id; "
                    "echo other | tine memory add plan");
    shell_ok(shell, "tine memory list plan | cut -f3");
    CHECK_STR(shell->output, "a fact\nother\n");
    shell_ok(shell, "tine memory list plan --json | jq -c '[.title,.content,.scope]'");
    CHECK_STR(shell->output, "[\"title\",\"a fact\",\"MEMORY_SCOPE_SESSION\"]\n"
                             "[null,\"other\",\"MEMORY_SCOPE_SESSION\"]\n");
    shell_ok(shell, "tine memory rm plan $(cat id); tine memory list plan | wc -l");
    CHECK_STR(shell->output, "1\n");
    shell_fails(shell, 3, "tine memory rm plan $(cat id)");
    shell_fails(shell, 2, "tine memory rm plan");
    shell_fails(shell, 2, "tine memory find plan");
    shell_fails(shell, 1, "tine memory add plan '  '");
    shell_fails(shell, 3, "tine memory list nothing");
}

TEST(todo_list_is_what_todo_set_takes)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "tine todo list plan");
    CHECK_STR(shell->output, "");
    shell_ok(shell, "tine todo set plan '[x] a' '[>] b' '[-] c' d '[ ] [e]'; tine todo list plan");
    CHECK_STR(shell->output, "[x] a\n[>] b\n[-] c\n[ ] d\n[ ] [e]\n");
    shell_ok(shell, "tine todo list plan >before; tine todo set plan <before; "
                    "tine todo list plan | cmp - before");
    shell_ok(shell, "tine todo list plan --json | jq -c '[.summary.total,.summary.incomplete,"
                    ".summary.in_progress,.summary.completed,.summary.cancelled]'");
    CHECK_STR(shell->output, "[5,3,1,1,1]\n");
    shell_ok(shell, "tine todo set plan --clear; tine todo list plan");
    CHECK_STR(shell->output, "");
    shell_fails(shell, 1, "seq 1001 | tine todo set plan");
    shell_fails(shell, 2, "tine todo add plan x");
    shell_fails(shell, 3, "tine todo list nothing");
}

static void spend(Shell *shell)
{
    shell_ok(shell, "tine append plan x -r assistant -m anthropic/claude --cost 1.5 --propagate; "
                    "tine append plan x -r assistant -m openai/gpt --cost 0.000000001 "
                    "--input-tokens 7; "
                    "tine fork plan -s fork; tine new -s sub --parent fork; "
                    "tine append sub x --cost 2 --propagate; tine append plan left -r assistant "
                    "--cost 4; tine rewind plan @head~1");
}

TEST(cost_counts_each_message_once)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    spend(shell);
    shell_ok(shell, "for s in plan fork sub; do tine cost $s | cut -f1-3; done");
    CHECK_STR(shell->output, "5.500000001\t3.50\t7\n0.00\t2.00\t0\n2.00\t2.00\t0\n");
    shell_ok(shell, "tine cost --by project | cut -f1-3");
    CHECK_STR(shell->output, "7.500000001\t3.50\t7\n");
    shell_ok(shell, "tine cost --by model | cut -f1,7");
    CHECK_STR(shell->output, "5.50\tanthropic/claude\n0.000000001\topenai/gpt\n"
                             "2.00\tunknown/unknown\n");
    shell_ok(shell, "tine cost plan --json | jq -c '[(.session_id|length),.own.cost_nano_usd,"
                    ".rolled_up.cost_nano_usd,.own.input_tokens]'");
    shell_shows(shell, "[26,5500000001,3500000000,7]\n");
    shell_ok(shell, "tine rm sub; tine cost --by project --project . | cut -f1");
    CHECK_STR(shell->output, "7.500000001\n");
    shell_fails(shell, 2, "tine cost --by day");
    shell_fails(shell, 3, "tine cost nothing");
}

TEST(tree_draws_forks_and_subagents)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "tine append plan x; tine fork plan -s f1; tine fork f1 -s f2; "
                    "tine new -s sub --parent f1; tine fork plan -s f3; tine new -s alone");
    shell_ok(shell, "tine tree | sed 's/[0-9A-Z]\\{26\\}  //; s/  [a-z ]*[0-9]* msgs\\?.*//'");
    CHECK_STR(shell->output, "plan\n├─ f1\n│  ├─ f2\n│  └─ sub\n└─ f3\nalone\n");
    shell_ok(shell, "tine tree sub --json | jq -c '[.sessions[].slug]'");
    CHECK_STR(shell->output, "[\"plan\",\"f1\",\"f2\",\"sub\",\"f3\"]\n");
    shell_ok(shell, "tine rm f1; tine tree | grep -c sub; tine tree -a | grep -c deleted");
    CHECK_STR(shell->output, "1\n1\n");
    shell_fails(shell, 3, "tine tree f1");
    shell_ok(shell, "tine tree sub --json | jq -c '[.sessions[].slug]'; "
                    "tine tree sub -a --json | jq -c '[.sessions[].slug]'; "
                    "tine tree alone --json | jq -c '[.sessions[].slug]'");
    CHECK_STR(shell->output, "[\"sub\"]\n[\"plan\",\"f1\",\"f2\",\"sub\",\"f3\"]\n"
                             "[\"alone\"]\n");
    shell_fails(shell, 3, "tine tree nothing");
    shell_ok(shell, "tine tree --project /nowhere");
    CHECK_STR(shell->output, "");
}

TEST(tree_draws_a_deep_chain)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "id=plan; for i in $(seq 60); do id=$(tine fork $id); done; "
                    "tine tree | wc -l; tine tree | tail -n 1 | grep -o '   *└' | wc -m");
    CHECK_STR(shell->output, "61\n119\n");
}

TEST(watch_prints_events_as_they_come)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "tine append plan x >/dev/null; tine watch --oldest -n 2 | cut -f1,3");
    CHECK_STR(shell->output, "1\tsession.created\n2\tmessage.appended\n");
    shell_ok(shell, "tine watch --after 1 -n 1 --json | jq -c '[.sequence,.type,.role]'");
    CHECK_STR(shell->output, "[2,\"message.appended\",\"ROLE_USER\"]\n");
    shell_ok(shell, "mkfifo pipe; tine watch plan --type message. >pipe & exec 3<pipe; "
                    "until tine todo set plan x && tine append plan y >/dev/null && "
                    "read -r -t 0.2 line <&3; do :; done; kill $!; wait $!; "
                    "echo \"$line\" | cut -f3");
    CHECK_STR(shell->output, "message.appended\n");
    shell_fails(shell, 1, "tine watch --after 1000000");
    shell_fails(shell, 2, "tine watch --after 1 --oldest");
    shell_fails(shell, 3, "tine watch nothing");
}

TEST(watch_goes_on_when_tined_is_started_again)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    CLEANUP(terminal_close)
    Terminal *terminal = terminal_start("exec tine watch --oldest -n 2 --json", 80);
    terminal_wait_for(terminal, "session.created");
    shell_tined_stop(shell);
    shell_tined_start(shell);
    shell_ok(shell, "tine append plan hello");
    CHECK_EQ(terminal_end(terminal), 0);
    terminal_wait_for(terminal, "message.appended");
}

TEST(top_in_a_pipe_looks_once)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "tine append plan x; tine top");
    shell_shows(shell, "sessions  1 active in 5 min, 0 busy");
    shell_shows(shell, "AppendMessage");
    shell_shows(shell, "plan");
    CHECK(!strchr(shell->output, '\033'));
    shell_ok(shell, "tine top --json | jq -c '[keys,.health.ready,(.sessions|length)]'");
    CHECK_STR(shell->output, "[[\"health\",\"sessions\",\"stats\"],true,1]\n");
    shell_fails(shell, 2, "tine top -i 1");
    shell_tined_stop(shell);
    shell_fails(shell, 4, "tine top --no-start");
}

TEST(ping_and_version)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "tine ping -n 2 | grep -c ready");
    CHECK_STR(shell->output, "2\n");
    shell_ok(shell, "tine ping --json | jq -c '[.ready,(.took_us|type)]'");
    CHECK_STR(shell->output, "[true,\"number\"]\n");
    shell_ok(shell, "tine version; tine --version");
    CHECK_STR(shell->output, "tine " TINE_VERSION "\ntine " TINE_VERSION "\n");
    shell_ok(shell, "tine version --server --json | jq -r .server_version,.format_version");
    CHECK_STR(shell->output, TINE_VERSION "\n3\n");
    shell_fails(shell, 2, "tine ping now");
    shell_tined_stop(shell);
    shell_fails(shell, 4, "tine ping --no-start");
    shell_says(shell, "no tined listens on ");
    shell_fails(shell, 2, "tine version --servr");
}

TEST(every_way_to_a_store_works)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "tine --url embedded:own new -s mine; tine --url embedded:own ls | cut -f6");
    shell_shows(shell, "\nmine\n");
    shell_ok(shell, "TINE_URL=embedded:own tine show mine --json | jq -r .slug");
    CHECK_STR(shell->output, "mine\n");
    shell_ok(shell, "TINE_SOCKET=$PWD/tine/tine.sock tine ls | cut -f6");
    CHECK_STR(shell->output, "plan\n");
    shell_ok(shell, "TINE_URL=embedded:own tine --socket $PWD/tine/tine.sock ls | cut -f6");
    CHECK_STR(shell->output, "plan\n");
    shell_fails(shell, 4,
                "tine --url tcp://127.0.0.1:1 --token-file token ls; "
                "echo 0123456789abcdef >token; tine --url tcp://127.0.0.1:1 "
                "--token-file token ls");
    shell_says(shell, "cannot read token");
    shell_fails(shell, 1, "tine --url nonsense ls");
}
