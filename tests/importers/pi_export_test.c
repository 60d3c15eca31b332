// Exports that differ from an imported file: forks, new entries, purged entries. And files whose
// order must be kept.

#include <stdlib.h>
#include <string.h>

#include "pi_steps.h"
#include "shell.h"
#include "terminal.h"

static void user(PiStore *store, const char *id, const char *parent)
{
    char quoted[64] = "null";
    if (parent) snprintf(quoted, sizeof(quoted), "\"%s\"", parent);
    pi_line(store,
            "{\"type\":\"message\",\"id\":\"%s\",\"parentId\":%s,\"timestamp\":"
            "\"2025-11-20T10:00:01.000Z\",\"message\":{\"role\":\"user\",\"content\":\"%s\","
            "\"timestamp\":1}}",
            id, quoted, id);
}

static void shows(const char *text, const char *part)
{
    if (!strstr(text, part)) printf("%s\nis not in\n%s\n", part, text);
    CHECK(strstr(text, part) != NULL);
}

// Makes the export the file to import.
static void take_export(PiStore *store)
{
    const char *text = pi_export_text(store);
    store->size = strlen(text);
    CHECK(store->size < sizeof(store->text));
    memcpy(store->text, text, store->size + 1);
}

// Checks that every entry comes after its parent. Returns the number of entries.
static size_t check_parents(const char *text)
{
    size_t count = 0;
    for (const char *line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        const char *parent = strstr(line, "\"parentId\":");
        CHECK(parent != NULL);
        count++;
        parent += strlen("\"parentId\":");
        if (*parent == 'n') continue;
        char id[64], *found;
        CHECK(snprintf(id, sizeof(id), "\"id\":%.*s", (int)strcspn(parent, ",}"), parent) < 64);
        found = strstr(text, id);
        CHECK(found != NULL && found < line);
    }
    return count;
}

static void id_of(PiStore *store, const char *entry, char out[STORE_ID_BYTES])
{
    CLEANUP(reply_freep) GetMessageResponse *reply = pi_entry(store, entry);
    snprintf(out, STORE_ID_BYTES, "%s", reply->message->id);
}

// Its branches begin at entries that are no longer in its history.
TEST(pi_export_of_a_fork_with_branches_has_everything_that_it_inherited)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    char second[STORE_ID_BYTES];
    pi_begin(store, "origin");
    user(store, "1", NULL);
    user(store, "2", "1");
    user(store, "3", "2");
    user(store, "4", "3");
    pi_import_ok(store);
    id_of(store, "2", second);
    pi_fork(store);
    pi_append_text(store, "x");
    pi_rewind_to(store, second);
    pi_append_text(store, "y");
    CHECK_EQ(check_parents(pi_export_text(store)), 6);
    shows(store->exported, "\"x\"");
    pi_fork(store); // a fork of a fork: 1, 2 and y
    pi_append_text(store, "z");
    CHECK_EQ(check_parents(pi_export_text(store)), 4);
    pi_rewind_to(store, ""); // cleared
    CHECK_EQ(check_parents(pi_export_text(store)), 4);
    pi_append_text(store, "new root");
    CHECK_EQ(check_parents(pi_export_text(store)), 5);
    take_export(store);
    pi_import_ok(store);
    CHECK_EQ(store->importer.report.entries_new, 9);
    pi_export_is_same(store);
}

// The entries that the fork reads are kept, but their session and their originals are gone.
TEST(pi_export_of_a_fork_whose_origin_was_purged_has_its_history)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "origin");
    user(store, "1", NULL);
    user(store, "2", "1");
    pi_import_ok(store);
    PurgeSessionRequest request = PURGE_SESSION_REQUEST__INIT;
    CLEANUP(reply_freep) PurgeSessionResponse *reply = NULL;
    char origin[STORE_ID_BYTES];
    snprintf(origin, sizeof(origin), "%s", store->session);
    pi_fork(store);
    pi_append_text(store, "x");
    request.session_id = origin;
    request.keep_for_forks = true;
    CHECK_EQ(tine_purge_session(store->importer.tine, NULL, &request, &reply), 0);
    CHECK_EQ(check_parents(pi_export_text(store)), 3);
    shows(store->exported, "\"text\":\"2\"");
}

static void label(PiStore *store, const char *target, const char *text)
{
    NewMessage message = NEW_MESSAGE__INIT;
    AppendMessageRequest request = APPEND_MESSAGE_REQUEST__INIT;
    CLEANUP(reply_freep) AppendMessageResponse *reply = NULL;
    message.kind = MESSAGE_KIND_LABEL;
    message.target_id = (char *)(uintptr_t)target;
    message.text = (char *)(uintptr_t)text;
    request.session_id = store->session;
    request.message = &message;
    CHECK_EQ(tine_append_message(store->importer.tine, NULL, &request, &reply), 0);
}

static void fork_at(PiStore *store, const char *id)
{
    ForkSessionRequest request = FORK_SESSION_REQUEST__INIT;
    CLEANUP(reply_freep) ForkSessionResponse *reply = NULL;
    request.session_id = store->session;
    request.fork_point_case = TINE__V1__FORK_SESSION_REQUEST__FORK_POINT_THROUGH_MESSAGE_ID;
    request.through_message_id = (char *)(uintptr_t)id;
    CHECK_EQ(tine_fork_session(store->importer.tine, NULL, &request, &reply), 0);
    snprintf(store->session, sizeof(store->session), "%s", reply->session->id);
}

TEST(pi_export_of_a_fork_names_its_parent)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "5b1c9a52-9f0e-4c58");
    user(store, "1", NULL);
    pi_import_ok(store);
    pi_fork(store);
    const char *name = "\"parentSession\":\"2025-11-20T10-00-00-000Z_5b1c9a52-9f0e-4c58.jsonl\"}\n";
    shows(pi_export_text(store), name);
    take_export(store);
    pi_import_ok(store);
    shows(pi_export_text(store), name);
}

// Labels may come after the fork point, or be on a branch that the fork does not have.
TEST(pi_export_of_a_fork_keeps_the_labels_of_what_it_inherited)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    char first[STORE_ID_BYTES], second[STORE_ID_BYTES], third[STORE_ID_BYTES];
    pi_begin(store, "origin");
    user(store, "1", NULL);
    pi_line(store,
            "{\"type\":\"label\",\"id\":\"l1\",\"parentId\":\"1\",\"targetId\":\"1\",\"label\":"
            "\"old\"}");
    user(store, "2", "l1");
    user(store, "3", "2");
    pi_line(store,
            "{\"type\":\"label\",\"id\":\"l2\",\"parentId\":\"3\",\"targetId\":\"2\",\"label\":"
            "\"behind\"}");
    pi_line(store,
            "{\"type\":\"label\",\"id\":\"l3\",\"parentId\":\"l2\",\"targetId\":\"3\",\"label\":"
            "\"of another branch\"}");
    pi_import_ok(store);
    id_of(store, "1", first);
    id_of(store, "2", second);
    id_of(store, "3", third);
    char origin[STORE_ID_BYTES];
    snprintf(origin, sizeof(origin), "%s", store->session);
    fork_at(store, second);
    char fork[STORE_ID_BYTES];
    snprintf(fork, sizeof(fork), "%s", store->session);
    snprintf(store->session, sizeof(store->session), "%s", origin);
    label(store, second, "after the fork");
    snprintf(store->session, sizeof(store->session), "%s", fork);

    CHECK_EQ(check_parents(pi_export_text(store)), 4);
    shows(store->exported, "\"targetId\":\"1\",\"label\":\"old\"}");
    shows(store->exported, "{\"type\":\"label\",\"id\":\"l2\",\"parentId\":\"2\",");
    shows(store->exported, "\"targetId\":\"2\",\"label\":\"behind\"}");
    CHECK(strstr(store->exported, "another branch") == NULL);
    CHECK(strstr(store->exported, "after the fork") == NULL);

    // A fork of the fork has the labels of its parent: a newer one for 2, and none for 1.
    label(store, second, "newer");
    label(store, first, "");
    fork_at(store, second);
    pi_append_text(store, "own");
    CHECK_EQ(check_parents(pi_export_text(store)), 6);
    shows(store->exported, "\"targetId\":\"2\",\"label\":\"newer\"}");
    CHECK(strstr(store->exported, "behind") == NULL);
    take_export(store);
    pi_import_ok(store);
    static const char CONTEXT[] = "user=1@1 user=2@1 user=own@"; // wherever the labels are
    CHECK(strncmp(pi_context_texts(store), CONTEXT, strlen(CONTEXT)) == 0);
}

static const char USAGE[] =
    "{\"type\":\"usage\",\"id\":\"w\",\"parentId\":\"u\",\"timestamp\":"
    "\"2025-11-20T10:00:02.000Z\",\"kind\":\"cache_warm\",\"provider\":\"p\",\"model\":\"m\","
    "\"usage\":{\"input\":1,\"cost\":{\"input\":0.1,\"total\":0.1000000000000000055}}}";
static const char EDIT[] =
    "{\"type\":\"context_edit\",\"id\":\"x\",\"parentId\":\"w\",\"timestamp\":"
    "\"2025-11-20T10:00:03.000Z\",\"targetId\":\"u\",\"replacement\":null}";
static const char MODE[] = "{\"type\":\"mode_change\",\"id\":\"y\",\"parentId\":\"x\",\"mode\":1}";

TEST(pi_export_of_a_fork_has_the_lines_that_it_inherited)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    char lines[2048];
    pi_begin(store, "origin");
    pi_bytes(store, "torn\n{\"type\":\"session\",\"id\":\"again\"}\n");
    size_t start = store->size;
    user(store, "u", NULL);
    pi_line(store, "%s", USAGE);
    pi_line(store, "%s", EDIT);
    pi_line(store, "%s", MODE);
    snprintf(lines, sizeof(lines), "%s", store->text + start);
    pi_bytes(store, "more that is torn");
    pi_import_ok(store);
    pi_fork(store);
    CHECK_STR(strchr(pi_export_text(store), '\n') + 1, lines);
    pi_append_text(store, "later");
    shows(pi_export_text(store), lines);
    shows(store->exported, "\"parentId\":\"y\"");
}

// Lines stay as they were, except for what is different in version 1.
TEST(pi_export_of_version_1_keeps_types_and_contents)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_line(store, "{\"type\":\"session\",\"id\":\"v1\",\"cwd\":\"/p\"}");
    pi_line(store, "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"a\"}}");
    pi_line(store, "{\"type\":\"event\",\"what\":[1.50]}");
    pi_line(store, "{\"type\":\"message\",\"message\":{\"role\":\"hookMessage\",\"customType\":"
                   "\"t\",\"content\":\"h\",\"display\":true}}");
    pi_line(store, "{\"type\":\"compaction\",\"summary\":\"S\",\"firstKeptEntryIndex\":2,"
                   "\"tokensBefore\":1}");
    pi_line(store, "{\"type\":\"compaction\",\"summary\":\"T\",\"firstKeptEntryIndex\":0}");
    pi_import_ok(store);
    pi_append_text(store, "later");
    CHECK_EQ(check_parents(pi_export_text(store)), 6);
    shows(store->exported, "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"a\"}"
                           ",\"id\":\"");
    shows(store->exported, "{\"type\":\"event\",\"what\":[1.50],\"id\":\"");
    shows(store->exported, "\"message\":{\"role\":\"custom\",\"customType\":\"t\",\"content\":");
    const char *kept = strstr(store->exported, "\"firstKeptEntryId\":");
    const char *event = strstr(store->exported, "[1.50],");
    CHECK(kept != NULL && event != NULL);
    CHECK(strncmp(kept + strlen("\"firstKeptEntryId\":"), event + strlen("[1.50],\"id\":"), 10) ==
          0);
    CHECK(strstr(kept + 2, "firstKeptEntryId") == NULL); // the header is no entry: nothing is kept
    CHECK(strstr(store->exported, "firstKeptEntryIndex") == NULL);
}

TEST(pi_header_of_version_1_keeps_its_fields_when_entries_are_added)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    static const char MORE[] =
        "\"id\":\"v1\",\"timestamp\":\"2025-11-20T10:00:00.000Z\",\"cwd\":\"/p\",\"provider\":"
        "\"anthropic\",\"modelId\":\"m\",\"thinkingLevel\":\"high\",\"branchedFrom\":"
        "\"/s/other.jsonl\",\"more\":[1.0]}";
    char wanted[512];
    pi_line(store, "{\"type\":\"session\",%s", MORE);
    pi_line(store, "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"a\"}}");
    pi_import_ok(store);
    pi_export_is_same(store);
    pi_append_text(store, "later");
    snprintf(wanted, sizeof(wanted), "{\"type\":\"session\",\"version\":3,%s\n", MORE);
    CHECK(strncmp(pi_export_text(store), wanted, strlen(wanted)) == 0);

    // The version is replaced if there is one; white space after a header without entries is
    // dropped.
    store->size = 0;
    pi_line(store, "{\"type\":\"session\",\"version\":1,\"id\":\"v\",\"provider\":\"p\"} ");
    pi_import_ok(store);
    pi_append_text(store, "later");
    shows(pi_export_text(store),
          "{\"type\":\"session\",\"version\":3,\"id\":\"v\",\"provider\":\"p\"}\n");
}

TEST(pi_header_alone_comes_back_with_what_follows_it)
{
    static const char *const ENDS[] = {"", "\n", "\r\n", " \t\n", "\n\n"};
    for (size_t i = 0; i < sizeof(ENDS) / sizeof(*ENDS); i++) {
        CLEANUP(pi_store_close) PiStore *store = pi_store_open();
        pi_bytes(store, "{\"type\":\"session\",\"version\":3,\"id\":\"h\",\"cwd\":\"/p\"}");
        pi_bytes(store, ENDS[i]);
        pi_import_ok(store);
        pi_export_is_same(store);
        pi_import_ok(store);
        pi_export_is_same(store);
        if (i == 0) pi_bytes(store, "\n");
        user(store, "1", NULL); // it has grown
        pi_import_ok(store);
        pi_export_is_same(store);
    }
}

// A header that our JSON fields cannot hold is replaced by a new one. The lines stay.
TEST(pi_header_that_cannot_be_kept_is_written_anew)
{
    static const char *const BEGINNINGS[] = {"{\"type\":\"session\"",
                                             "{\"type\":\"session\",\"version\":2",
                                             "{\"type\":\"session\",\"version\":3"};
    static const char TIME[] = "\"timestamp\":\"2025-11-20T10:00:00.000Z\"";
    char deep[401] = "", wanted[1024];
    memset(deep, '[', 200);
    memset(deep + 200, ']', 200);
    for (size_t i = 0; i < 3; i++) {
        CLEANUP(pi_store_close) PiStore *store = pi_store_open();
        pi_line(store, "%s,\"id\":\"h\",\"cwd\":\"/p\",%s,\"deep\":%s}", BEGINNINGS[i], TIME, deep);
        size_t start = store->size;
        pi_line(store, "{\"type\":\"message\",\"message\":{\"role\":\"hookMessage\"}}");
        pi_bytes(store, "torn");
        pi_import_ok(store);
        snprintf(wanted, sizeof(wanted), "%s,\"id\":\"h\",%s,\"cwd\":\"/p\"}\n%s", BEGINNINGS[i],
                 TIME, store->text + start);
        CHECK_STR(pi_export_text(store), wanted);
    }
}

static void purge(PiStore *store, const char *entry)
{
    char id[STORE_ID_BYTES];
    PurgeMessageRequest request = PURGE_MESSAGE_REQUEST__INIT;
    CLEANUP(reply_freep) PurgeMessageResponse *reply = NULL;
    id_of(store, entry, id);
    request.message_id = id;
    CHECK_EQ(tine_purge_message(store->importer.tine, NULL, &request, &reply), 0);
}

TEST(pi_export_after_a_purge_leaves_no_orphan)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "s");
    user(store, "1", NULL);
    user(store, "2", "1");
    user(store, "3", "2");
    user(store, "4", "2");
    pi_import_ok(store);
    purge(store, "2");
    CHECK_EQ(check_parents(pi_export_text(store)), 4);
    CHECK(strstr(store->exported, "\"content\":\"2\"") == NULL);
    shows(store->exported, "\"content\":\"4\"");
    purge(store, "1");
    CHECK_EQ(check_parents(pi_export_text(store)), 4);
    pi_fork(store);
    CHECK_EQ(check_parents(pi_export_text(store)), 3);
}

TEST(pi_entries_below_one_that_pi_has_given_another_id_name_that)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_line(store, "{\"type\":\"session\",\"id\":\"v1\",\"cwd\":\"/p\"}");
    pi_line(store, "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"a\"}}");
    pi_import_ok(store);
    store->size = 0;
    pi_line(store, "{\"type\":\"session\",\"id\":\"v1\",\"cwd\":\"/p\",\"version\":3}");
    pi_line(store, "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"a\"},"
                   "\"id\":\"4f0c\",\"parentId\":null}");
    pi_import_ok(store);
    pi_append_text(store, "later");
    shows(pi_export_text(store), "\"parentId\":\"4f0c\"");
    pi_fork(store);
    CHECK_EQ(check_parents(pi_export_text(store)), 2);
}

static void deleted(PiStore *store, const char *entry)
{
    char id[STORE_ID_BYTES];
    DeleteMessageRequest request = DELETE_MESSAGE_REQUEST__INIT;
    CLEANUP(reply_freep) DeleteMessageResponse *reply = NULL;
    id_of(store, entry, id);
    request.message_id = id;
    CHECK_EQ(tine_delete_message(store->importer.tine, NULL, &request, &reply), 0);
}

TEST(pi_deleted_entry_is_a_note_that_others_hang_below)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "s");
    user(store, "first", NULL);
    user(store, "2", "first");
    pi_import_ok(store);
    deleted(store, "first");
    CHECK_EQ(check_parents(pi_export_text(store)), 2);
    CHECK(strstr(store->exported, "\"content\":\"first\"") == NULL);
    shows(store->exported, "{\"type\":\"custom\",\"customType\":\"tine.deleted\",\"id\":\"first\"");
    pi_fork(store);
    CHECK_EQ(check_parents(pi_export_text(store)), 2);
}

// pi writes the whole list again, with its header, when it continues a file that has no answer yet.
TEST(pi_list_that_stands_twice_comes_back_in_its_order)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "twice");
    for (int i = 0; i < 2; i++) {
        user(store, "1", NULL);
        user(store, "2", "1");
        user(store, "3", "2");
        if (i == 0) pi_line(store, "{\"type\":\"session\",\"version\":3,\"id\":\"twice\"}");
    }
    user(store, "4", "3");
    pi_import_ok(store);
    CHECK_EQ(store->importer.report.entries_new, 7);
    CHECK_STR(pi_context(store), "user:1 user:2 user:3 user:4 | off none");
    pi_export_is_same(store);
    pi_import_ok(store);
    CHECK_EQ(store->importer.report.entries_new, 7);
    pi_fork(store);
    CHECK_EQ(check_parents(pi_export_text(store)), 4);
}

// The same, with an import between the two lists.
TEST(pi_list_that_stands_twice_since_it_was_imported_comes_back_in_its_order)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "twice");
    user(store, "1", NULL);
    user(store, "2", "1");
    pi_import_ok(store);
    pi_line(store, "{\"type\":\"session\",\"version\":3,\"id\":\"twice\"}");
    user(store, "1", NULL);
    user(store, "2", "1");
    user(store, "3", "2");
    pi_import_ok(store);
    CHECK_EQ(store->importer.report.entries_new, 5);
    CHECK_STR(pi_context(store), "user:1@5 user:2@6 user:3 | off none");
    pi_export_is_same(store);
    pi_import_ok(store);
    CHECK_EQ(store->importer.report.entries_new, 5);
    pi_export_is_same(store);
    pi_append_text(store, "later");
    CHECK_EQ(check_parents(strstr(pi_export_text(store), "twice\"}")), 4);
}

TEST(pi_rings_and_late_parents_come_back_in_their_own_order)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "rings");
    user(store, "a", "b");
    user(store, "b", "c");
    user(store, "c", "a");
    user(store, "s", "s");
    user(store, "d", "a");
    pi_bytes(store, "torn\n");
    user(store, "e", "d");
    user(store, "d", "late");
    user(store, "late", NULL);
    pi_import_ok(store);
    pi_export_is_same(store);
    pi_import_ok(store);
    CHECK_EQ(store->importer.report.entries_new, 8);
    pi_export_is_same(store);
    pi_append_text(store, "later"); // what is added comes after them
    CHECK(strncmp(pi_export_text(store), store->text, store->size) == 0);
    pi_rewind(store, NULL);
    user(store, "f", "g");
    user(store, "g", "late");
    pi_import_ok(store);
    shows(pi_export_text(store), "\"id\":\"f\"");
}

// pi finds the later "d" by the ID. If the earlier one came last, "d" and "c" would be ancestors of
// each other, and pi would loop forever.
TEST(pi_id_used_twice_around_its_child_comes_back_in_its_own_order)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "twice");
    user(store, "r", NULL);
    user(store, "d", "c");
    user(store, "c", "d");
    user(store, "d", "r");
    pi_import_ok(store);
    CHECK_STR(pi_context(store), "user:r user:d | off none");
    pi_export_is_same(store);
    user(store, "e", "c"); // it has grown
    user(store, "n", "m");
    user(store, "m", "e");
    pi_import_ok(store);
    pi_export_is_same(store);
}

// Every child comes before its parent.
TEST(pi_file_upside_down_comes_back_as_it_was)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "down");
    for (int i = 1500; i > 0; i--) {
        char id[16], parent[16];
        snprintf(id, sizeof(id), "%d", i);
        snprintf(parent, sizeof(parent), "%d", i - 1);
        user(store, id, i > 1 ? parent : NULL);
    }
    pi_import_ok(store);
    pi_export_is_same(store);
}

// The reader of the file waits until progress is shown.
TEST(pi_export_shows_at_a_terminal_how_far_it_is)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, "{ echo '{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/p\"}'"
                    "; printf '{\"type\":\"custom\",\"id\":\"1\",\"parentId\":null,\"data\":\"'"
                    "; head -c 1000000 /dev/zero | tr '\\0' a; echo '\"}'; } >long.jsonl");
    shell_ok(shell, "tine --url embedded:s import pi long.jsonl");
    CLEANUP(terminal_close)
    Terminal *terminal = terminal_start(
        "tine --url embedded:s export pi @last | { read -r key </dev/tty; cmp - long.jsonl; }", 80);
    terminal_wait_for(terminal, "exported: ");
    terminal_type(terminal, "\n");
    CHECK_EQ(terminal_end(terminal), 0);
}
