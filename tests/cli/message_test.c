// append, log, fork, rewind, clear, compact.

#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "shell.h"

static Shell *open_with_session(void)
{
    Shell *shell = shell_open();
    shell_tined_start(shell);
    shell_ok(shell, "tine new -s plan -m anthropic/claude");
    return shell;
}

TEST(append_takes_a_text_or_standard_input)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "tine append plan 'first text'");
    CHECK_EQ(strlen(shell->output), 27);
    shell_ok(shell, "printf 'two\\nlines\\n' | tine append plan -r assistant");
    shell_ok(shell, "echo dash | tine append --session plan -");
    shell_ok(shell, "tine append -s plan -- '-r is no option here'");
    shell_ok(shell, "tine log plan --json | jq -c '[.role,.parts[0].text.text]'");
    CHECK_STR(shell->output, "[\"ROLE_USER\",\"first text\"]\n"
                             "[\"ROLE_ASSISTANT\",\"two\\nlines\"]\n"
                             "[\"ROLE_USER\",\"dash\"]\n"
                             "[\"ROLE_USER\",\"-r is no option here\"]\n");
}

TEST(append_json_is_the_receipt)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "tine append plan hello --json | jq -c 'keys|join(\" \")'");
    CHECK_STR(shell->output, "\"created_at id part_ids sequence session_id\"\n");
}

TEST(append_takes_parts_and_whole_messages)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "tine append plan -r assistant --parts "
                    "'[{\"text\":{\"text\":\"a\"}},"
                    "{\"tool_use\":{\"id\":\"1\",\"name\":\"ls\"}}]'");
    shell_ok(shell, "echo '{\"role\":\"tool\",\"parts\":[{\"tool_result\":{\"tool_use_id\":\"1\","
                    "\"content\":\"b\"}}]}' >file; tine append plan --message @file");
    shell_ok(shell, "tine append plan --message - <file");
    shell_ok(shell, "tine log plan --json | jq -c '[.role,(.parts|length)]'");
    CHECK_STR(shell->output, "[\"ROLE_ASSISTANT\",2]\n[\"ROLE_TOOL\",1]\n[\"ROLE_TOOL\",1]\n");
    shell_fails(shell, 2, "tine append plan --parts '[{\"txt\":1}]'");
    shell_says(shell, "line 1, column");
    shell_fails(shell, 2, "tine append plan --parts '[]' text");
    shell_fails(shell, 1, "tine append plan --message @missing");
}

TEST(append_fails_with_what_to_do_about_it)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_fails(shell, 2, "tine append");
    shell_fails(shell, 2, "tine append plan a b");
    shell_fails(shell, 2, "tine append plan x -r boss");
    shell_says(shell, "'boss' is not one of: user, assistant, tool, system, other");
    shell_fails(shell, 2, "tine append plan x --cost 1,5");
    shell_fails(shell, 3, "tine append nothing x");
    shell_fails(shell, 1, "tine append plan x --expect-head 0000000000000000000000000A");
    shell_fails(shell, 1, "printf 'a\\0b' | tine append plan");
    shell_fails(shell, 1, "printf '\\377' | tine append plan");
    shell_fails(shell, 1, "head -c 17000000 /dev/zero | tr '\\0' x | tine append plan");
    shell_says(shell, "16 MiB");
    shell_ok(shell, "tine log plan");
    CHECK_STR(shell->output, "");
}

TEST(append_with_an_operation_id_is_done_once)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "for i in 1 2 3; do tine append plan hello --operation-id op-1; done | uniq");
    CHECK_EQ(strlen(shell->output), 27);
    shell_ok(shell, "tine log plan --oneline | wc -l");
    CHECK_STR(shell->output, "1\n");
}

TEST(append_after_another_message_makes_a_branch)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "tine append plan a; tine append plan b; tine append plan c --parent @head~1; "
                    "tine log plan --oneline | cut -f3 | tr -d '\\n'");
    shell_shows(shell, "ac");
    shell_ok(shell, "tine append plan d --parent ''; tine log plan --oneline | cut -f3");
    shell_shows(shell, "\nd\n");
}

TEST(log_prints_what_people_read)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "tine append plan 'Where do we begin?'; tine append plan 'Here.' -r assistant "
                    "-m anthropic/claude --input-tokens 1200 --output-tokens 30 --cost 0.0123");
    shell_ok(shell, "tine log | sed 's/^[0-9A-Z]\\{26\\}/ID/;s/[0-9T:.-]*Z/TIME/'");
    CHECK_STR(shell->output, "ID user  TIME\n    Where do we begin?\n\n"
                             "ID assistant  TIME  claude  1.2k in, 30 out  $0.01\n    Here.\n\n");
}

TEST(log_takes_the_last_ones_and_turns_round)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "for i in $(seq 30); do tine append plan $i; done");
    shell_ok(shell, "tine log plan -n 3 --oneline | cut -f3 | tr '\\n' ' '");
    CHECK_STR(shell->output, "28 29 30 ");
    shell_ok(shell, "tine log plan -n 3 --reverse --oneline | cut -f3 | tr '\\n' ' '");
    CHECK_STR(shell->output, "30 29 28 ");
    shell_ok(shell, "tine log plan --reverse --oneline | cut -f3 | head -2 | tr '\\n' ' '");
    CHECK_STR(shell->output, "30 29 ");
    shell_fails(shell, 2, "tine log plan --since-marker -n 3");
    shell_fails(shell, 2, "tine log plan --follow --reverse");
    shell_fails(shell, 3, "tine log nothing");
}

TEST(log_goes_through_many_pages_and_ends_quietly_at_head)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "head -c 20000 /dev/zero | tr '\\0' x >text; "
                    "for i in $(seq 100); do tine append plan <text; done >/dev/null; "
                    "tine log plan --json | jq -r .id | sort -u | wc -l");
    CHECK_STR(shell->output, "100\n");
    shell_ok(shell, "tine log plan -n 90 --oneline | wc -l");
    CHECK_STR(shell->output, "90\n");
    shell_ok(shell, "tine log plan | head -n 1 | cut -c 28-31");
    CHECK_STR(shell->output, "user\n");
    CHECK_STR(shell->errors, "");
    shell_ok(shell, "tine log plan | head -n 1 >/dev/null; echo ${PIPESTATUS[0]}");
    CHECK_STR(shell->output, "141\n");
}

TEST(what_cannot_be_written_is_a_failure)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "tine append plan hello");
    shell_fails(shell, 1, "tine log plan >/dev/full");
    shell_says(shell, "tine: the output could not be written: No space left on device");
    shell_fails(shell, 1, "tine ls --json >/dev/full");
    // Also for a parent that ignores the signal.
    shell_ok(shell, "head -c 1000000 /dev/zero | tr '\\0' x | tine append plan");
    shell_ok(shell, "(trap '' PIPE; tine log plan; echo $? >&2) | head -c 1; cat /dev/null");
    CHECK_STR(shell->errors, "141\n");
}

TEST(log_follows)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "tine append plan before >/dev/null; mkfifo pipe; "
                    "tine log plan -f --json >pipe & exec 3<pipe; read -r a <&3; "
                    "tine append plan after >/dev/null; tine compact plan sum >/dev/null; "
                    "read -r b <&3; read -r c <&3; kill $!; wait $!; "
                    "printf '%%s\\n' \"$a\" \"$b\" | jq -r '.parts[0].text.text'; "
                    "echo \"$c\" | jq -r .marker.summary");
    CHECK_STR(shell->output, "before\nafter\nsum\n");
}

TEST(log_says_what_is_inherited_and_what_is_live)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "tine append plan one; tine append plan two; tine fork plan -s fork; "
                    "tine append fork three; tine compact fork 'one and two' --before @head~1; "
                    "tine append fork four");
    shell_ok(shell, "tine log fork --oneline | cut -f2,3 | tr '\\t\\n' ': '");
    CHECK_STR(shell->output, "user:one user:two user:three compaction:one and two user:four ");
    shell_ok(shell, "tine log fork --direct --kind conversation --oneline | cut -f3 | "
                    "tr '\\n' ' '");
    CHECK_STR(shell->output, "three four ");
    shell_ok(shell, "tine log fork --since-marker --oneline | cut -f2,3 | tr '\\t\\n' ': '");
    CHECK_STR(shell->output, "compaction:one and two user:three user:four ");
    shell_fails(shell, 2, "tine log fork --kind talk");
}

TEST(log_at_a_message_is_its_branch_and_moves_nothing)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "tine append plan one >one; tine append plan two; tine compact plan sum; "
                    "tine append plan three >three; tine rewind plan $(cat one); "
                    "tine append plan four");
    shell_ok(shell, "for o in '' '-r' '-n 2' '-m' '-d'; do "
                    "tine log plan $o --at $(cat three) --oneline | cut -f3 | tr '\\n' ' '; echo; "
                    "done");
    CHECK_STR(shell->output, "one two sum three \nthree sum two one \nsum three \nsum three \n"
                             "one two sum three \n");
    shell_ok(shell, "tine log plan --at @head~1 --json | jq -r .id | cmp - one");
    shell_ok(shell, "tine log plan --oneline | cut -f3 | tr '\\n' ' '");
    CHECK_STR(shell->output, "one four ");
    shell_fails(shell, 2, "tine log plan --at @head --follow");
    shell_fails(shell, 3, "tine log plan --at @head~9");
    shell_fails(shell, 3, "tine log plan --at 0000000000000000000000000A");
    shell_ok(shell, "tine new --slug other; tine append other theirs >theirs");
    shell_fails(shell, 1, "tine log plan --at $(cat theirs)");
    shell_says(shell, "not in the tree");
}

TEST(fork_begins_as_its_source_does)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "tine append plan one; tine append plan two >two; tine append plan three");
    shell_ok(shell, "for o in '' '--at @head~1' \"--at $(cat two)\" \"--before $(cat two)\"; do "
                    "tine log $(tine fork plan $o) --oneline | cut -f3 | tr '\\n' ' '; echo; done");
    CHECK_STR(shell->output, "one two three \none two \none two \none \n");
    shell_ok(shell, "tine fork plan -s other -m openai/gpt --json | jq -c '[.slug,.model.name]'");
    CHECK_STR(shell->output, "[\"other\",\"gpt\"]\n");
    shell_fails(shell, 3, "tine fork nothing");
    shell_fails(shell, 3, "tine fork plan --at @head~9");
    shell_fails(shell, 2, "tine fork plan --at @head --before @head");
    shell_fails(shell, 2, "tine fork");
}

TEST(rewind_goes_back_and_clear_to_the_beginning)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "tine append plan one >one; tine append plan two; tine append plan three");
    shell_ok(shell, "tine rewind plan @head~2 | cmp - one; tine log plan --oneline | cut -f3");
    CHECK_STR(shell->output, "one\n");
    shell_ok(shell, "tine append plan four; tine clear plan; tine log plan");
    CHECK_EQ(strlen(shell->output), 27);
    shell_ok(shell, "tine rewind plan $(cat one) --json | jq -r .head_id | cmp - one");
    shell_fails(shell, 2, "tine rewind plan");
    shell_fails(shell, 3, "tine rewind plan 0000000000000000000000000A");
    shell_fails(shell, 3, "tine rewind plan 7ZZZ");
    shell_fails(shell, 2, "tine rewind plan first");
    shell_ok(shell, "tine clear plan --json | jq -r '.head_id // \"none\"'");
    CHECK_STR(shell->output, "none\n");
    shell_fails(shell, 3, "tine clear nothing");
}

TEST(an_ambiguous_message_lists_the_candidates)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_ok(shell, "tine append plan one >one; tine append plan two");
    shell_fails(shell, 1, "tine rewind plan $(head -c 4 one)");
    shell_says(shell, "may be one of these messages");
    shell_ok(shell, "grep -c . one");
}

TEST(compact_adds_a_marker)
{
    CLEANUP(shell_close) Shell *shell = open_with_session();
    shell_fails(shell, 3, "tine compact plan 'nothing to sum up'");
    shell_ok(shell, "tine append plan one; tine append plan two; "
                    "echo 'all of it' | tine compact plan --tokens-saved 7 --json | jq -c .marker");
    shell_shows(shell, "\"summary\":\"all of it\"");
    shell_shows(shell, "\"tokens_saved\":7");
    shell_ok(shell, "tine append plan three; tine log -m --oneline | cut -f3 | tr '\\n' ' '");
    shell_shows(shell, "all of it three ");
    shell_ok(shell, "tine compact plan sum --keep-all");
    shell_fails(shell, 2, "tine compact plan sum --keep-all --before @head");
    shell_fails(shell, 3, "tine compact nothing sum");
}
