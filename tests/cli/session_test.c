// new, ls, show, rename, rm, restore and purge, and names of sessions.

#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "shell.h"

static Shell *open_shell(void)
{
    Shell *shell = shell_open();
    shell_tined_start(shell);
    return shell;
}

TEST(new_prints_the_id_and_nothing_else)
{
    CLEANUP(shell_close) Shell *shell = open_shell();
    const char *id = shell_ok(shell, "tine new --slug plan -t 'The plan' -m anthropic/claude");
    CHECK_EQ(strlen(id), 27);
    CHECK_STR(shell->errors, "");
    shell_ok(shell, "tine show plan --json | jq -c "
                    "'[.slug,.title,.model.provider,.model.name,.kind,.project_dir==$ENV.PWD]'");
    CHECK_STR(shell->output, "[\"plan\",\"The plan\",\"anthropic\",\"claude\","
                             "\"SESSION_KIND_PRIMARY\",true]\n");
}

TEST(new_json_is_the_session)
{
    CLEANUP(shell_close) Shell *shell = open_shell();
    shell_ok(shell, "tine new --slug plan --json | jq -c 'keys-[\"slug\"]|join(\" \")'");
    CHECK_STR(shell->output,
              "\"archived_at call_count created_at deleted_at entry_count id kind last_active_at "
              "last_event_sequence message_count model next_sequence own_totals project_dir "
              "root_id status status_until totals updated_at\"\n");
}

TEST(new_makes_subagents_that_may_inherit)
{
    CLEANUP(shell_close) Shell *shell = open_shell();
    shell_ok(shell, "tine new -s boss; tine append boss one; tine append boss two");
    shell_ok(shell, "tine new -s worker --parent boss --inherit @head~1 --role-name tester");
    shell_ok(shell, "tine show worker --json | jq -c '[.kind,.role_name]'");
    CHECK_STR(shell->output, "[\"SESSION_KIND_SUBAGENT\",\"tester\"]\n");
    shell_ok(shell, "tine log worker --oneline | cut -f3");
    CHECK_STR(shell->output, "one\n");
    shell_fails(shell, 2, "tine new --inherit @head");
}

TEST(slugs_are_unique_when_asked_for)
{
    CLEANUP(shell_close) Shell *shell = open_shell();
    shell_ok(shell, "tine new -s plan");
    shell_fails(shell, 1, "tine new -s plan --unique");
    shell_says(shell, "tine: slug 'plan' is already used by session");
    shell_ok(shell, "tine new -s plan --suffix --json | jq -r .slug");
    CHECK_STR(shell->output, "plan-2\n");
    shell_fails(shell, 2, "tine new -s plan --suffix --unique");
}

TEST(ls_in_a_pipe_is_a_line_for_each_without_headings)
{
    CLEANUP(shell_close) Shell *shell = open_shell();
    shell_ok(shell, "tine ls");
    CHECK_STR(shell->output, "");
    shell_ok(shell, "tine new -s a >/dev/null; tine new -s b >/dev/null; "
                    "tine append a 'to the top' --cost 0.5 >/dev/null; tine ls | cut -f3-6");
    CHECK_STR(shell->output, "1\t0.50\t\ta\n0\t0.00\t\tb\n");
    shell_ok(shell, "tine ls --order created | cut -f6 | tr -d '\\n'");
    CHECK_STR(shell->output, "ba");
    shell_ok(shell, "tine ls --json | jq -c '[.slug,.own_totals.cost_nano_usd]'");
    CHECK_STR(shell->output, "[\"a\",500000000]\n[\"b\",0]\n");
}

TEST(ls_filters)
{
    CLEANUP(shell_close) Shell *shell = open_shell();
    shell_ok(shell, "tine new -s a; mkdir sub; cd sub; tine new -s b; tine new -s c --parent a; "
                    "tine rm b");
    shell_ok(shell, "tine ls | cut -f6 | tr -d '\\n'");
    CHECK_STR(shell->output, "ca");
    shell_ok(shell, "tine ls -a | cut -f5,6 | grep b");
    CHECK_STR(shell->output, "deleted\tb\n");
    shell_ok(shell, "tine ls --deleted | cut -f6");
    CHECK_STR(shell->output, "b\n");
    shell_ok(shell, "tine ls --project . | cut -f6");
    CHECK_STR(shell->output, "a\n");
    shell_ok(shell, "tine ls --parent a --kind subagent -q c | cut -f6");
    CHECK_STR(shell->output, "c\n");
    shell_ok(shell, "tine ls -n 1 | wc -l");
    CHECK_STR(shell->output, "1\n");
    shell_fails(shell, 2, "tine ls --kind fork");
    shell_says(shell, "'fork' is not one of: any, primary, subagent");
}

TEST(ls_goes_through_many_pages)
{
    CLEANUP(shell_close) Shell *shell = open_shell();
    shell_ok(shell, "for i in $(seq 120); do tine new -s s$i; done >/dev/null; "
                    "tine ls | cut -f1 | sort -u | wc -l");
    CHECK_STR(shell->output, "120\n");
    shell_ok(shell, "tine ls -n 70 | wc -l");
    CHECK_STR(shell->output, "70\n");
}

TEST(a_deleted_session_comes_back_and_a_purged_one_does_not)
{
    CLEANUP(shell_close) Shell *shell = open_shell();
    shell_ok(shell, "tine new -s plan; tine append plan hello; tine rm plan");
    shell_fails(shell, 1, "tine append plan more");
    shell_says(shell, "deleted");
    shell_ok(shell, "tine restore plan --json | jq .deleted_at");
    CHECK_STR(shell->output, "0\n");
    shell_fails(shell, 2, "tine purge plan </dev/null");
    shell_says(shell, "--yes");
    shell_ok(shell, "tine log plan --oneline | wc -l");
    CHECK_STR(shell->output, "1\n");
    shell_ok(shell, "tine purge plan --yes --json | jq .kept_for_forks");
    CHECK_STR(shell->output, "false\n");
    shell_fails(shell, 3, "tine show plan");
    shell_fails(shell, 3, "tine rm nothing");
    shell_fails(shell, 3, "tine restore nothing");
}

TEST(purge_keeps_what_forks_read_when_told_to)
{
    CLEANUP(shell_close) Shell *shell = open_shell();
    shell_ok(shell, "tine new -s plan; tine append plan hello; tine fork plan -s fork");
    shell_fails(shell, 1, "tine purge plan --yes");
    shell_ok(shell, "tine purge plan --yes --keep-for-forks");
    shell_shows(shell, "Forks still read");
    shell_ok(shell, "tine log fork --oneline | cut -f3");
    CHECK_STR(shell->output, "hello\n");
}

TEST(rename_sets_slug_and_title)
{
    CLEANUP(shell_close) Shell *shell = open_shell();
    shell_ok(shell, "tine new -s a; tine new -s b; tine rename a c; tine rename c -t 'See'");
    shell_ok(shell, "tine show c --json | jq -c '[.slug,.title]'");
    CHECK_STR(shell->output, "[\"c\",\"See\"]\n");
    shell_fails(shell, 1, "tine rename c b --unique");
    shell_ok(shell, "tine rename c b --suffix");
    CHECK_STR(shell->output, "b-2\n");
    shell_fails(shell, 2, "tine rename b");
    shell_fails(shell, 3, "tine rename x y");
    shell_ok(shell, "tine rename b '' && tine ls -q b-2 --json | jq -r .slug");
    CHECK_STR(shell->output, "b-2\n");
}

TEST(show_says_what_is_known)
{
    CLEANUP(shell_close) Shell *shell = open_shell();
    shell_ok(shell, "tine new -s plan --system $'Be brief.\\nBe kind.'; tine append plan hello");
    shell_ok(shell, "tine show plan");
    shell_shows(shell, "slug           plan\n");
    shell_shows(shell, "model          unknown/unknown\n");
    shell_shows(shell, "messages       1 of 1 entries\n");
    shell_shows(shell, "    Be brief.\n    Be kind.\n");
    shell_ok(shell, "tine show plan @head --json | jq -r '.parts[0].text.text'");
    CHECK_STR(shell->output, "hello\n");
    shell_ok(shell, "tine show plan @head");
    shell_shows(shell, "\n    hello\n");
    shell_fails(shell, 3, "tine show plan @head~7");
}

TEST(sessions_are_named_by_prefix_slug_and_place)
{
    CLEANUP(shell_close) Shell *shell = open_shell();
    shell_ok(shell, "tine new -s first >id; tine new -s second >>id");
    shell_ok(shell, "for i in 1 2; do tine show $(sed -n ${i}p id | tr A-Z a-z) --json; done "
                    "| jq -r .slug | tr '\\n' ' '");
    CHECK_STR(shell->output, "first second ");
    shell_ok(shell, "tine show @last --json | jq -r .slug");
    CHECK_STR(shell->output, "second\n");
    shell_ok(shell, "tine show @last~1 --json | jq -r .slug");
    CHECK_STR(shell->output, "first\n");
    shell_ok(shell, "tine append first hi; tine show @last --json | jq -r .slug");
    shell_shows(shell, "first\n");
    shell_fails(shell, 3, "tine show @last~2");
    shell_says(shell, "there is no @last~2: there are 2 sessions");
    shell_fails(shell, 2, "tine show @lats");
    shell_fails(shell, 3, "tine show abc");
    shell_says(shell, "4 characters");
    shell_fails(shell, 3, "tine show zzzz");
    shell_fails(shell, 3, "tine show 0000000000000000000000000Z");
}

TEST(an_ambiguous_prefix_lists_the_candidates)
{
    CLEANUP(shell_close) Shell *shell = open_shell();
    shell_ok(shell, "tine new -s first >id; tine new -s second >>id");
    shell_fails(shell, 1, "tine show $(head -c 5 id)");
    shell_says(shell, "may be one of these sessions");
    shell_says(shell, "first\n");
    shell_says(shell, "second\n");
    CHECK_STR(shell->output, "");
    // Without its last character the ID matches one session, unless both were made in one
    // millisecond.
    shell_ok(shell, "tine show $(head -n 1 id | head -c 25) --json | jq -r .slug || "
                    "[ $(head -n 1 id | head -c 25) = $(tail -n 1 id | head -c 25) ]");
}

TEST(a_slug_that_several_have_is_that_of_the_one_that_is_not_deleted)
{
    CLEANUP(shell_close) Shell *shell = open_shell();
    shell_ok(shell, "tine new -s plan -t old >old; tine new -s plan -t new");
    shell_fails(shell, 1, "tine show plan");
    shell_ok(shell, "tine rm $(cat old); tine show plan --json | jq -r .title");
    CHECK_STR(shell->output, "new\n");
}
