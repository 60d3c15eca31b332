// Completions of command lines, and the script for bash.

#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "shell.h"
#include "terminal.h"

static const char *new_session(Shell *shell)
{
    return shell_ok(shell, "tine call CreateSession '{\"session\": {\"project_dir\": \"/p\", "
                           "\"slug\": \"plan\", \"title\": \"what \\u001b[2J we do\", \"model\": "
                           "{\"provider\": \"a\", \"name\": \"b\"}}}' | jq -r .session.id");
}

TEST(commands_and_options_are_completed_from_their_table)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, "tine __complete -- back");
    CHECK_STR(shell->output, "backup\tcopies the store while tined runs, and checks the copy\n");
    shell_ok(shell, "tine __complete -- backup --com");
    CHECK_STR(shell->output, "--compact\tleave out unused space in the file\n");
    shell_ok(shell, "tine __complete -- backup --js | cut -f 1");
    CHECK_STR(shell->output, "--json\n");
    shell_ok(shell, "tine __complete -- call AppendM | cut -f 1");
    CHECK_STR(shell->output, "AppendMessage\n");
    shell_ok(shell, "tine __complete -- restore-backup ''");
    CHECK_STR(shell->output, ":files\n");
    shell_ok(shell, "tine __complete -- backup --data ''");
    CHECK_STR(shell->output, ":files\n");
    shell_ok(shell, "tine __complete -- completion z | cut -f 1");
    CHECK_STR(shell->output, "zsh\n");
    shell_ok(shell, "tine __complete -- no-such-command ''; tine __complete -- ping ''");
    CHECK_STR(shell->output, "");
    shell_ok(shell, "tine __complete -- __; tine help");
    CHECK(!strstr(shell->output, "__"));
}

TEST(sessions_and_messages_are_completed)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, "tine __complete -- log pl"); // no tined runs, and none is started
    CHECK_STR(shell->output, "");
    shell_fails(shell, 2, "ls data");
    shell_tined_start(shell);
    char id[27], prefix[13];
    snprintf(id, sizeof(id), "%.26s", new_session(shell));
    snprintf(prefix, sizeof(prefix), "%.12s", id);
    shell_ok(shell, "tine __complete -- log pl");
    CHECK(strncmp(shell->output, "plan\twhat ", 10) == 0);
    CHECK(!strchr(shell->output, '\033'));
    shell_ok(shell, "tine __complete -- log %s | cut -f 1", prefix);
    CHECK(strncmp(shell->output, id, 26) == 0);
    shell_ok(shell,
             "tine call AppendMessage '{\"session_id\": \"%s\", \"message\": {\"role\": "
             "\"user\", \"parts\": [{\"text\": {\"text\": \"hello\"}}]}}' | "
             "jq -r .receipt.id > message && "
             "tine __complete -- rewind plan $(head -c 10 message) > answers && "
             "grep -q \"^$(cat message)\tuser: hello\" answers",
             id);
    shell_ok(shell, "tine __complete -- fork @l | cut -f 1");
    CHECK_STR(shell->output, "@last\n");
}

// Readline splits words by its own rules, so the test uses it.
TEST(tab_completes_at_a_terminal)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_tined_start(shell);
    new_session(shell);
    CLEANUP(terminal_close)
    Terminal *terminal = terminal_start("PS1='> ' exec bash --norc --noprofile -i", 100);
    terminal_type(terminal, "eval \"$(tine completion bash)\"; echo rea\"dy\"\n");
    terminal_wait_for(terminal, "ready");
    terminal_type(terminal, "tine sho\tpl\t--js\t\n");
    terminal_wait_for(terminal, "> tine show plan --json ");
    terminal_wait_for(terminal, "\"slug\": \"plan\"");
    terminal_type(terminal, "tine log @la\t--one\t&& echo bo\"th\"\n");
    terminal_wait_for(terminal, "> tine log @last --oneline ");
    terminal_wait_for(terminal, "both");
    terminal_type(terminal, "exit\n");
    CHECK_EQ(terminal_end(terminal), 0);
}

TEST(bash_completes_with_the_script)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_tined_start(shell);
    new_session(shell);
    shell_ok(shell, "eval \"$(tine completion bash)\"\n"
                    "compopt() { echo \"compopt $*\"; }\n"
                    "for COMP_LINE in 'tine restore-b' 'tine log @la' 'tine log p' "
                    "'tine log plan --js' 'tine check '; do\n"
                    "COMP_POINT=${#COMP_LINE}; _tine; echo \"${COMPREPLY[*]}\"; done");
    CHECK_STR(shell->output, "restore-backup\n@last\nplan\n--json\ncompopt -o default\n\n");
    shell_ok(shell, "for shell in bash zsh fish; do tine completion $shell | grep -q __complete "
                    "|| exit 1; done");
    shell_fails(shell, 2, "tine completion tcsh");
}
