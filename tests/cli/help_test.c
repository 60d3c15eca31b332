// Help and wrong usage of every command.

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "harness.h"
#include "options.h"
#include "shell.h"

TEST(every_command_has_help_with_two_examples)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    for (size_t i = 0; COMMANDS[i]; i++) {
        const Command *command = COMMANDS[i];
        char name[64];
        snprintf(name, sizeof(name), "tine %s", command->name);
        CHECK(command->examples[0] && command->examples[1]);
        shell_ok(shell, "tine %s --help", command->name);
        CHECK(strncmp(shell->output, name, strlen(name)) == 0);
        for (size_t j = 0; command->examples[j]; j++) {
            CHECK(strstr(command->examples[j], name));
            shell_shows(shell, command->examples[j]);
        }
        for (const Option *option = command->options; option && option->name; option++) {
            shell_shows(shell, option->help);
        }
        shell_ok(shell, "tine help %s | head -n 1 | wc -l", command->name);
        CHECK_STR(shell->output, "1\n");
    }
}

TEST(every_command_refuses_what_it_does_not_know)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    for (size_t i = 0; COMMANDS[i]; i++) {
        const Command *command = COMMANDS[i];
        shell_fails(shell, 2, "tine --no-start %s --no-such-option", command->name);
        shell_says(shell, "there is no option '--no-such-option'");
        CHECK_STR(shell->output, "");
        if (command->argument_count_min > 0) {
            shell_fails(shell, 2, "tine --no-start %s", command->name);
            shell_says(shell, command->arguments);
        }
        if (command->argument_count_max == COMMAND_ANY_COUNT) continue;
        shell_fails(shell, 2, "tine --no-start %s a b c d e f g", command->name);
    }
}

TEST(no_options_share_a_name_or_a_letter)
{
    for (size_t i = 0; COMMANDS[i]; i++) {
        for (const Option *a = COMMANDS[i]->options; a && a->name; a++) {
            for (const Option *b = a + 1; b->name; b++) {
                CHECK(strcmp(a->name, b->name) != 0);
                CHECK(!a->letter || a->letter != b->letter);
            }
            for (const Option *b = GLOBAL_OPTIONS; b->name; b++) {
                CHECK(strcmp(a->name, b->name) != 0);
                CHECK(!a->letter || a->letter != b->letter);
            }
        }
    }
}

TEST(tine_alone_says_what_it_can_do)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, "tine");
    for (size_t i = 0; COMMANDS[i]; i++) {
        if (COMMANDS[i]->name[0] != '_') shell_shows(shell, COMMANDS[i]->summary);
    }
    shell_shows(shell, "0 done, 1 failed, 2 wrong usage, 3 not found, 4 tined cannot be reached");
    shell_ok(shell, "tine help | cmp - <(tine)");
    shell_ok(shell, "tine --help | cmp - <(tine)");
}

TEST(what_was_probably_meant_is_said)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_fails(shell, 2, "tine froK");
    shell_says(shell, "did you mean fork?");
    shell_fails(shell, 2, "tine apend x y");
    shell_says(shell, "did you mean append?");
    shell_fails(shell, 2, "tine help resotre");
    shell_says(shell, "did you mean restore?");
    shell_fails(shell, 2, "tine qqqqqqqq");
    CHECK(!strstr(shell->errors, "did you mean"));
    shell_fails(shell, 2, "tine ls --jsno");
    shell_says(shell, "did you mean --json?");
    shell_fails(shell, 2, "tine --scoket x ls");
    shell_says(shell, "did you mean --socket?");
}

TEST(options_are_read_as_everywhere)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_fails(shell, 2, "tine ls -n");
    shell_says(shell, "-n needs a value: N");
    shell_fails(shell, 2, "tine ls --limit");
    shell_says(shell, "--limit needs a value: N");
    shell_fails(shell, 2, "tine ls --json=yes");
    shell_says(shell, "--json takes no value");
    shell_fails(shell, 2, "tine ls -n 0");
    shell_fails(shell, 2, "tine ls -n 5x");
    shell_fails(shell, 2, "tine ls --color sometimes");
    shell_fails(shell, 2, "tine -x ls");
    shell_ok(shell, "tine --json version -h");
    shell_shows(shell, "tine version:");
    shell_tined_start(shell);
    shell_ok(shell, "tine new -s a; tine new -s b; tine ls -n1 --limit=2 -an 1 | wc -l");
    shell_shows(shell, "\n1\n");
}

// Messages of several commands that write to one log are not mixed: each is one write.
TEST(a_message_is_written_at_once)
{
    char text[512];
    int ends[2];
    CHECK_EQ(pipe2(ends, O_DIRECT | O_CLOEXEC), 0); // each read returns one write
    pid_t child = fork();
    if (child == 0) {
        shell_enter_home();
        dup2(ends[1], STDERR_FILENO);
        execlp("tine", "tine", "no-such-command", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    ssize_t size = read(ends[0], text, sizeof(text));
    CHECK(size > 0 && text[size - 1] == '\n');
    CHECK_EQ(read(ends[0], text, sizeof(text)), 0);
    close(ends[0]);
    CHECK_EQ(waitpid(child, NULL, 0), child);
}
