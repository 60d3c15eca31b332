// An export can be imported into another store without loss, also repeatedly.

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "harness.h"
#include "shell.h"

// Creates a project with branches, a clear, forks of forks and of nothing, a subagent, markers,
// labels, deleted and purged entries, memories, todos, totals, archived and deleted sessions, an
// external ID of another system, and a parent in another project.
static const char DAY[] =
    "set -e\n"
    "call() { tine --url embedded:from call \"$@\"; }\n"
    "new() { call CreateSession \"{\\\"session\\\": {\\\"project_dir\\\": \\\"$1\\\", "
    "\\\"slug\\\": \\\"$2\\\", \\\"title\\\": \\\"T \\u00e9\\\", "
    "\\\"created_at\\\": 1700000000000, "
    "\\\"system_prompt\\\": \\\"be kind\\\", \\\"data_json\\\": \\\"{}\\\", \\\"model\\\": "
    "{\\\"provider\\\": \\\"a\\\", \\\"name\\\": \\\"b\\\"}$3}}\" | jq -r .session.id; }\n"
    "add() { call AppendMessage \"{\\\"session_id\\\": \\\"$1\\\", \\\"message\\\": "
    "{\\\"created_at\\\": 1700000001000, $2}$3}\" | jq -r .receipt.id; }\n"
    "say() { add $1 \"\\\"role\\\": \\\"user\\\", \\\"parts\\\": [{\\\"text\\\": {\\\"text\\\": "
    "\\\"$2\\\"}}]\" \"$3\"; }\n"
    "parent=$(new /other parent)\n"
    "p1=$(say $parent inherited)\n"
    "main=$(call ForkSession \"{\\\"session_id\\\": \\\"$parent\\\", \\\"at_head\\\": true, "
    "\\\"slug\\\": \\\"main\\\"}\" | jq -r .session.id)\n"
    "one=$(new /p one ', \"external\": {\"source\": \"pi\", \"id\": \"x1\"}')\n"
    "m1=$(say $one hello)\n"
    "m2=$(add $one '\"role\": \"assistant\", \"external\": {\"source\": \"pi\", \"id\": \"e2\"}, "
    "\"usage\": {\"input_tokens\": 5, \"cost_nano_usd\": 7}, \"parts\": [{\"id\": \"part\", "
    "\"signature\": \"/+8=\", \"tool_use\": {\"id\": \"t1\", \"name\": \"read\", \"input_json\": "
    "\"{}\", \"state\": \"TOOL_STATE_COMPLETED\"}}, {\"image\": {\"mime_type\": \"image/png\", "
    "\"data\": \"AAEC\"}}]')\n"
    "m3=$(say $one 'gone soon')\n"
    "m4=$(say $one 'a \\u001b[2J secret')\n"
    "call PutOriginal \"{\\\"message_id\\\": \\\"$m3\\\", \\\"content\\\": \\\"AP8B\\\"}\" "
    ">/dev/null\n"
    "call DeleteMessage \"{\\\"message_id\\\": \\\"$m3\\\"}\" >/dev/null\n"
    "call PurgeMessage \"{\\\"message_id\\\": \\\"$m4\\\"}\" >/dev/null\n"
    "m5=$(say $one 'another branch' \", \\\"parent_id\\\": \\\"$m1\\\"\")\n"
    "call AddCompactionMarker \"{\\\"session_id\\\": \\\"$one\\\", \\\"marker\\\": "
    "{\\\"before_message_id\\\": \\\"$m1\\\", \\\"summary\\\": \\\"short\\\"}}\" >/dev/null\n"
    "add $one \"\\\"kind\\\": \\\"LABEL\\\", \\\"target_id\\\": \\\"$m2\\\", \\\"text\\\": "
    "\\\"here\\\"\" >/dev/null\n"
    "fork=$(call ForkSession \"{\\\"session_id\\\": \\\"$one\\\", \\\"through_message_id\\\": "
    "\\\"$m2\\\"}\" | jq -r .session.id)\n"
    "f1=$(say $fork 'in the fork')\n"
    "call ForkSession \"{\\\"session_id\\\": \\\"$fork\\\", \\\"before_message_id\\\": "
    "\\\"$m1\\\"}\" >/dev/null\n"
    "deep=$(call ForkSession \"{\\\"session_id\\\": \\\"$fork\\\", \\\"through_message_id\\\": "
    "\\\"$f1\\\"}\" | jq -r .session.id)\n"
    "say $deep 'deeper' >/dev/null\n"
    "sub=$(new /p sub \", \\\"kind\\\": \\\"SUBAGENT\\\", \\\"parent_id\\\": \\\"$one\\\"\")\n"
    "say $sub 'a task' >/dev/null\n"
    "empty=$(new /p empty)\n"
    "call RewindSession \"{\\\"session_id\\\": \\\"$one\\\", \\\"message_id\\\": \\\"$m2\\\"}\" "
    ">/dev/null\n"
    "call RewindSession \"{\\\"session_id\\\": \\\"$deep\\\"}\" >/dev/null\n"
    "call RememberSessionMemory \"{\\\"session_id\\\": \\\"$one\\\", \\\"memory\\\": "
    "{\\\"content\\\": \\\"a fact\\\", \\\"title\\\": \\\"t\\\"}}\" >/dev/null\n"
    "call ReplaceSessionTodos \"{\\\"session_id\\\": \\\"$one\\\", "
    "\\\"items\\\": [{\\\"content\\\": "
    "\\\"c\\\", \\\"status\\\": \\\"pending\\\"}]}\" >/dev/null\n"
    "call PropagateTotals \"{\\\"session_id\\\": \\\"$sub\\\", \\\"delta\\\": "
    "{\\\"cost_nano_usd\\\": 11, \\\"input_tokens\\\": -3}}\" >/dev/null\n"
    "call UpdateSession \"{\\\"session_id\\\": \\\"$sub\\\", \\\"mask\\\": [\\\"ARCHIVED\\\"], "
    "\\\"archived\\\": true}\" >/dev/null\n"
    "call SoftDeleteSession \"{\\\"session_id\\\": \\\"$empty\\\"}\" >/dev/null\n"
    "echo $one $parent\n";

// Normalizes an export for comparison: IDs become numbers in order of first appearance, and times
// of the store become true.
static const char SAME[] =
    "plain() { jq -c 'def has_time: if . == null or . == 0 then false else true end; "
    "  del(.session.updated_at, .session.last_event_sequence, .memory.created_at, "
    "      .memory.updated_at, .todos.updated_at) | "
    "  if .session then .session.deleted_at |= has_time | .session.archived_at |= has_time "
    "    else . end | "
    "  if .entry then .entry.deleted_at |= has_time else . end | "
    "  if (.session.external.source? == \"tine\") then del(.session.external) else . end | "
    "  if (.entry.external.source? == \"tine\") then del(.entry.external) else . end' | "
    "awk '{ line = \"\"; while (match($0, /\"[0-7][0-9A-HJKMNP-TV-Z]+\"/)) { "
    "  id = substr($0, RSTART, RLENGTH); before = substr($0, 1, RSTART - 1); "
    "  $0 = substr($0, RSTART + RLENGTH); "
    "  if (length(id) == 28) { if (!(id in seen)) seen[id] = ++count; id = \"#\" seen[id] } "
    "  line = line before id } print line $0 }'; }\n";

static void write_script(Shell *shell, const char *name, const char *text)
{
    char path[1024];
    (void)shell;
    snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    fputs(text, file);
    CHECK_EQ(fclose(file), 0);
}

static Shell *day_of_project(void)
{
    Shell *shell = shell_open();
    write_script(shell, "day", DAY);
    write_script(shell, "same", SAME);
    shell_ok(shell, "bash day > ids");
    return shell;
}

TEST(a_project_comes_back_as_it_was)
{
    CLEANUP(shell_close) Shell *shell = day_of_project();
    shell_ok(shell, "tine --url embedded:from export --project /p -o first.jsonl && "
                    "tine --url embedded:to import first.jsonl --json > r && "
                    "jq -e '.sessions_new == 6 and .entries_new == 10 and .entries_known == 0' r");
    shell_ok(shell, "tine --url embedded:to export --all > second.jsonl && tine check to && "
                    ". ./same && plain < first.jsonl > 1 && plain < second.jsonl > 2 && "
                    "diff 1 2");
    shell_ok(shell, "tine --url embedded:to export --all | jq -r 'select(.entry) | .entry.text' | "
                    "grep -c here");
    CHECK_STR(shell->output, "1\n");
}

TEST(a_session_of_pi_s_keeps_its_file_through_export_and_import)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, "printf '%%s\\r\\n' '{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":"
                    "\"/p\"}' '{\"type\":\"message\",\"id\":\"1\", \"parentId\":null,\"message\":"
                    "{\"role\":\"user\",\"content\":\"hello\"}}' '{\"torn' > a.jsonl && "
                    "tine --url embedded:one import pi a.jsonl && "
                    "tine --url embedded:one export --all > all.jsonl && "
                    "tine --url embedded:two import all.jsonl && "
                    "tine --url embedded:two export pi @last | cmp - a.jsonl && "
                    "tine --url embedded:two import pi a.jsonl --json");
    shell_shows(shell, "\"entries_new\": 0");
}

TEST(importing_again_adds_nothing)
{
    CLEANUP(shell_close) Shell *shell = day_of_project();
    shell_ok(shell, "tine --url embedded:from export --all > all.jsonl && "
                    "tine --url embedded:to import all.jsonl && "
                    "tine --url embedded:to export --all > once && "
                    "tine --url embedded:to import --json - < all.jsonl > r && "
                    "jq -e '.sessions_new == 0 and .entries_new == 0 and .entries_known == 11' r "
                    "&& tine --url embedded:to export --all | cmp - once");
    shell_ok(shell, "tine --url embedded:from export --all > before && "
                    "tine --url embedded:from import all.jsonl && "
                    "tine --url embedded:from export --all | cmp - before");
}

TEST(an_interrupted_import_goes_on)
{
    CLEANUP(shell_close) Shell *shell = day_of_project();
    shell_ok(shell, "tine --url embedded:from export --all > all.jsonl && wc -l < all.jsonl");
    int lines = 0;
    CHECK_EQ(sscanf(shell->output, "%d", &lines), 1);
    for (int i = 1; i < lines; i++) {
        // The file ends within a line: earlier lines are imported, and the failure is reported.
        shell_fails(shell, 1,
                    "{ head -n %d all.jsonl; echo '{\"entry\":{'; } | "
                    "tine --url embedded:to import - > /dev/null",
                    i);
        shell_says(shell, "line ");
    }
    shell_ok(shell, "tine --url embedded:to import all.jsonl && "
                    "tine --url embedded:to export --all > second.jsonl && tine check to && "
                    ". ./same && plain < all.jsonl > 1 && plain < second.jsonl > 2 && diff 1 2");
}

TEST(a_fork_of_a_purged_session_keeps_what_it_inherited)
{
    CLEANUP(shell_close) Shell *shell = day_of_project();
    shell_ok(shell, "read one parent < ids && "
                    "tine --url embedded:from call PurgeSession \"{\\\"session_id\\\": "
                    "\\\"$parent\\\", \\\"keep_for_forks\\\": true}\" && "
                    "tine --url embedded:from export main > main.jsonl && "
                    "tine --url embedded:to import main.jsonl --project /new && "
                    "tine --url embedded:to call ListSessions | jq -r .sessions[0].project_dir");
    shell_shows(shell, "/new\n");
    shell_ok(shell, "tine --url embedded:to log main --json");
    shell_shows(shell, "inherited");
}

TEST(what_is_no_export_is_refused_with_its_line)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_fails(shell, 1, "echo '{\"session\":{}}' | tine --url embedded:to import -");
    shell_says(shell, "line 1, column 2: the first line must be {\"tine_export\":1}");
    shell_fails(shell, 1, "echo '{\"tine_export\":2}' | tine --url embedded:to import -");
    shell_says(shell, "an export of format 2");
    shell_fails(shell, 1,
                "printf '{\"tine_export\":1}\\n\\n{\"entry\":{}}\\n' | "
                "tine --url embedded:to import -");
    shell_says(shell, "line 3: this entry comes before any session");
    shell_fails(shell, 1,
                "printf '{\"tine_export\":1}\\n{\"session\":{\"idd\":1}}\\n' | "
                "tine --url embedded:to import -");
    shell_says(shell, "line 2, column 13: session: Session has no field \"idd\"");
    shell_fails(shell, 1, "printf '' | tine --url embedded:to import -");
    shell_fails(shell, 1, "tine --url embedded:to import nowhere.jsonl");
    shell_says(shell, "cannot read nowhere.jsonl");
    shell_fails(shell, 2, "tine --url embedded:to export");
    shell_fails(shell, 3, "tine --url embedded:to export nothing");
    shell_fails(shell, 3, "tine --url embedded:to export --project /nothing");
}

TEST(markdown_is_what_a_person_would_read)
{
    CLEANUP(shell_close) Shell *shell = day_of_project();
    shell_ok(shell, "tine --url embedded:from export one --markdown");
    shell_shows(shell, "# T \xc3\xa9\n");
    shell_shows(shell, "## user\n");
    shell_shows(shell, "hello\n");
    shell_shows(shell, "**tool** `read`\n\n```json\n{}\n```\n");
    shell_shows(shell, "*image image/png, 3 B*");
    CHECK(!strstr(shell->output, "another branch"));
}

// A NAME is the title when it is appended; here the title was changed after it.
TEST(export_keeps_a_title_that_was_changed_after_the_last_name)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, "export TINE_URL=embedded:from; tine new --slug s --project /p --title before"
                    "; tine append s --message '{\"kind\": \"NAME\", \"text\": \"named\"}'"
                    "; tine rename s --title 'renamed'; tine export s >one.jsonl");
    shell_ok(shell, "tine --url embedded:to import one.jsonl");
    shell_ok(shell, "tine --url embedded:to show s");
    shell_shows(shell, "renamed");
    shell_ok(shell, "tine --url embedded:to rename s --title own");
    shell_ok(shell, "tine --url embedded:to import one.jsonl");
    shell_ok(shell, "tine --url embedded:to show s");
    shell_shows(shell, "own");
}

// The operation of an import's last step is the title's, not the session's alone: an export with
// another title is another one.
TEST(an_export_is_imported_again_after_its_title_was_changed)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, "export TINE_URL=embedded:from; tine new --slug s --project /p"
                    "; tine append s --message '{\"kind\": \"NAME\", \"text\": \"named\"}'"
                    "; tine export s >one.jsonl; tine rename s --title renamed"
                    "; tine append s later; tine export s >two.jsonl");
    shell_ok(shell, "tine --url embedded:to import one.jsonl");
    shell_ok(shell, "tine --url embedded:to import two.jsonl");
    shell_shows(shell, "entries: 1 new, 1 there already");
    shell_ok(shell, "tine --url embedded:to show s");
    shell_shows(shell, "renamed");
}
