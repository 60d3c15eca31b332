// Importing a file of pi again: after it has grown, after pi has rewritten it, or after an import
// that was interrupted.

#include <stdlib.h>
#include <string.h>

#include "importers/pi/pi_file.h"
#include "pi_steps.h"
#include "shell.h"

static void user(PiStore *store, const char *id, const char *parent, const char *text)
{
    char quoted[64] = "null";
    if (parent) snprintf(quoted, sizeof(quoted), "\"%s\"", parent);
    pi_line(store,
            "{\"type\":\"message\",\"id\":\"%s\",\"parentId\":%s,\"timestamp\":"
            "\"2025-11-20T10:00:01.000Z\",\"message\":{\"role\":\"user\",\"content\":\"%s\","
            "\"timestamp\":1}}",
            id, quoted, text);
}

static const char *text_of(PiStore *store, const char *id)
{
    static char text[256];
    CLEANUP(reply_freep) GetMessageResponse *reply = pi_entry(store, id);
    snprintf(text, sizeof(text), "%s", reply->message->parts[0]->text->text);
    return text;
}

// The message and the original of these lines do not fit into one request.
TEST(pi_entry_of_many_megabytes_is_imported_and_comes_back)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_tined_start(shell);
    static const size_t SIZES[] = {9 * 1024 * 1024, PI_LINE_BYTES_MAX - 100};
    for (size_t i = 0; i < sizeof(SIZES) / sizeof(*SIZES); i++) {
        shell_ok(shell,
                 "{ echo '{\"type\":\"session\",\"version\":3,\"id\":\"large %zu\",\"cwd\":\"/p\"}'"
                 "; printf '{\"type\":\"custom\",\"customType\":\"t\",\"data\":\"'"
                 "; head -c %zu /dev/zero | tr '\\0' a"
                 "; echo '\",\"id\":\"1\",\"parentId\":null}'"
                 "; echo '{\"type\":\"custom\",\"customType\":\"t\",\"id\":\"2\",\"parentId\":"
                 "\"1\"}'; } >large.jsonl",
                 i, SIZES[i]);
        shell_ok(shell, "tine import pi large.jsonl");
        shell_ok(shell, "tine export pi @last | cmp - large.jsonl");
        shell_ok(shell, "tine import --json pi large.jsonl");
        shell_shows(shell, "\"entries_new\": 0, \"entries_known\": 2");
    }
}

// Longer than the field allows. The original has all of it.
TEST(pi_summary_over_4_mib_is_cut)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell,
             "{ echo '{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/p\"}'"
             "; printf '{\"type\":\"compaction\",\"id\":\"1\",\"parentId\":null,\"summary\":\"'"
             "; head -c 5000000 /dev/zero | tr '\\0' a; echo '\"}'; } >long.jsonl");
    shell_ok(shell, "tine --url embedded:s import pi long.jsonl");
    shell_ok(shell, "tine --url embedded:s export pi @last | cmp - long.jsonl");
}

TEST(pi_line_over_16_mib_refuses_the_file)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, "{ echo '{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/p\"}'"
                    "; head -c 17000000 /dev/zero | tr '\\0' a; } >long.jsonl");
    shell_fails(shell, 1, "tine --url embedded:s import pi long.jsonl");
    shell_says(shell, "line 2 has 17000000 bytes; 16711680 are allowed");
}

TEST(pi_id_used_again_in_a_file_that_has_grown_means_the_new_entry)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "grown");
    user(store, "r", NULL, "root");
    user(store, "d", "r", "old");
    pi_import_ok(store);
    user(store, "d", "r", "new");
    pi_import_ok(store);
    CHECK_EQ(store->importer.report.entries_new, 3);
    CHECK_STR(pi_context(store), "user:r user:d@4 | off none");
    CHECK_STR(text_of(store, "d"), "old");
    CHECK_STR(text_of(store, "d@4"), "new");
    pi_export_is_same(store);
    user(store, "c", "d", "child");
    pi_import_ok(store);
    CHECK_STR(pi_context(store), "user:r user:d@4 user:c | off none");
    user(store, "d", "r", "newest");
    user(store, "e", "d", "last");
    pi_import_ok(store);
    CHECK_EQ(store->importer.report.entries_new, 6);
    CHECK_STR(pi_context(store), "user:r user:d@6 user:e | off none");
    pi_export_is_same(store);
    pi_import_ok(store);
    CHECK_EQ(store->importer.report.entries_new, 6);
    pi_export_is_same(store);
}

TEST(pi_parents_of_stored_entries_stay)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "stay");
    user(store, "d", NULL, "old");
    user(store, "c", "d", "child");
    user(store, "o", "later", "orphan");
    pi_import_ok(store);
    user(store, "d", NULL, "new");
    user(store, "later", NULL, "parent");
    pi_import_ok(store);
    pi_rewind(store, "c");
    CHECK_STR(pi_context(store), "user:d user:c | off none"); // pi has the new one here
    pi_rewind(store, "o");
    CHECK_STR(pi_context(store), "user:o | off none");
    pi_export_is_same(store);
}

// Appends an entry without its original, as an interrupted import does.
static void append_bare(PiStore *store, NewMessage *message, const char *id, const char *parent)
{
    External external = EXTERNAL__INIT;
    AppendMessageRequest request = APPEND_MESSAGE_REQUEST__INIT;
    CLEANUP(reply_freep) AppendMessageResponse *reply = NULL;
    CLEANUP(reply_freep) GetMessageResponse *above = parent ? pi_entry(store, parent) : NULL;
    external.source = (char *)(uintptr_t) "pi";
    external.id = (char *)(uintptr_t)id;
    message->external = &external;
    request.session_id = store->session;
    request.message = message;
    request.parent_case = APPEND_MESSAGE_REQUEST__PARENT_PARENT_ID;
    if (above) request.parent_id = above->message->id;
    CHECK_EQ(tine_append_message(store->importer.tine, NULL, &request, &reply), 0);
}

static void create_bare(PiStore *store, const char *id)
{
    static char source[] = "pi", unknown[] = "unknown", version[] = "3", directory[] = "/p";
    ModelRef model = MODEL_REF__INIT;
    External external = EXTERNAL__INIT;
    NewSession session = NEW_SESSION__INIT;
    CreateSessionRequest request = CREATE_SESSION_REQUEST__INIT;
    CLEANUP(reply_freep) CreateSessionResponse *reply = NULL;
    model.provider = model.name = unknown;
    external.source = source;
    external.id = (char *)(uintptr_t)id;
    session.external = &external;
    session.model = &model;
    session.data_version = version;
    session.project_dir = directory;
    request.session = &session;
    CHECK_EQ(tine_create_session(store->importer.tine, NULL, &request, &reply), 0);
    snprintf(store->session, sizeof(store->session), "%s", reply->session->id);
}

TEST(pi_import_that_was_cut_off_after_its_last_entry_is_finished_by_the_next)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    static char name_text[] = "called", provider[] = "p", model_name[] = "m", subtype[] = "model";
    create_bare(store, "cut off");
    ModelRef model = MODEL_REF__INIT;
    NewMessage name = NEW_MESSAGE__INIT, setting = NEW_MESSAGE__INIT, text = NEW_MESSAGE__INIT;
    name.kind = MESSAGE_KIND_NAME;
    name.text = name_text;
    model.provider = provider;
    model.name = model_name;
    setting.kind = MESSAGE_KIND_SETTING;
    setting.subtype = subtype;
    setting.model = &model;
    text.role = ROLE_USER;
    append_bare(store, &name, "n", NULL);
    append_bare(store, &text, "last", "n"); // moved before its child
    append_bare(store, &setting, "s", "last");

    pi_begin(store, "cut off");
    pi_line(store,
            "{\"type\":\"session_info\",\"id\":\"n\",\"parentId\":null,\"name\":\"called\"}");
    pi_line(store, "{\"type\":\"model_change\",\"id\":\"s\",\"parentId\":\"last\",\"provider\":"
                   "\"p\",\"modelId\":\"m\"}");
    user(store, "last", "n", "x");
    pi_import_ok(store);
    CHECK_EQ(store->importer.report.entries_new, 0);
    CLEANUP(reply_freep) GetMessageResponse *last = pi_entry(store, "last");
    CLEANUP(reply_freep) GetSessionResponse *reply = pi_session(store);
    CHECK_STR(reply->session->title, "called");
    CHECK_STR(reply->session->model->name, "m");
    CHECK_STR(reply->session->head_id, last->message->id);
}

// Changes that were made here after a complete import are kept.
TEST(pi_import_again_leaves_head_and_title_where_they_are)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    static char title[] = "mine";
    SessionField mask[] = {SESSION_FIELD_TITLE};
    UpdateSessionRequest request = UPDATE_SESSION_REQUEST__INIT;
    CLEANUP(reply_freep) UpdateSessionResponse *reply = NULL;
    pi_begin(store, "s");
    user(store, "1", NULL, "x");
    user(store, "2", "1", "x");
    pi_line(store, "{\"type\":\"session_info\",\"id\":\"n\",\"parentId\":\"2\",\"name\":\"pi's\"}");
    pi_import_ok(store);
    pi_rewind(store, "1");
    request.session_id = store->session;
    request.title = title;
    request.mask = mask;
    request.n_mask = 1;
    CHECK_EQ(tine_update_session(store->importer.tine, NULL, &request, &reply), 0);
    pi_import_ok(store);
    CHECK_STR(pi_context(store), "user:1 | off none");
    user(store, "3", "2", "x");
    pi_import_ok(store);
    CHECK_STR(pi_context(store), "user:1 user:2 user:3 | off none");
    CLEANUP(reply_freep) GetSessionResponse *session = pi_session(store);
    CHECK_STR(session->session->title, "mine");
}

TEST(pi_title_is_the_last_name)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "names");
    pi_line(store, "{\"type\":\"session_info\",\"id\":\"1\",\"parentId\":null,\"name\":\"one\"}");
    pi_line(store, "{\"type\":\"session_info\",\"id\":\"2\",\"parentId\":\"1\",\"name\":\"two\"}");
    pi_line(store, "{\"type\":\"session_info\",\"id\":\"3\",\"parentId\":\"2\",\"name\":\"\"}");
    pi_import_ok(store);
    CLEANUP(reply_freep) GetSessionResponse *first = pi_session(store);
    CHECK_STR(first->session->title, ""); // an empty name clears it
    pi_line(store, "{\"type\":\"session_info\",\"id\":\"4\",\"parentId\":\"3\",\"name\":\"four\"}");
    pi_import_ok(store);
    CLEANUP(reply_freep) GetSessionResponse *second = pi_session(store);
    CHECK_STR(second->session->title, "four");

    // A name that is appended here becomes the title, and the next import of the file keeps it.
    static char five[] = "five";
    NewMessage name = NEW_MESSAGE__INIT;
    name.kind = MESSAGE_KIND_NAME;
    name.text = five;
    append_bare(store, &name, "5", "4");
    pi_import_ok(store);
    CLEANUP(reply_freep) GetSessionResponse *third = pi_session(store);
    CHECK_STR(third->session->title, "five");
}

static void version_1(PiStore *store)
{
    store->size = 0;
    pi_line(store, "{\"type\":\"session\",\"id\":\"v1\",\"cwd\":\"/p\"}");
    pi_line(store, "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"a\"}}");
    pi_line(store, "broken");
    pi_line(store, "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"b\"}}");
}

// When pi opens such a file, it gives the entries random IDs and rewrites the file.
TEST(pi_version_1_that_pi_has_migrated_since_is_the_same_session)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    version_1(store);
    pi_import_ok(store);
    CHECK_EQ(store->importer.report.entries_new, 2);
    store->size = 0;
    pi_line(store, "{\"type\":\"session\",\"id\":\"v1\",\"cwd\":\"/p\",\"version\":3}");
    pi_line(store, "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"a\"},"
                   "\"id\":\"4f0c\",\"parentId\":null}");
    pi_line(store, "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"b\"},"
                   "\"id\":\"77ab\",\"parentId\":\"4f0c\"}");
    user(store, "c", "77ab", "c");
    pi_import_ok(store);
    CHECK_EQ(store->importer.report.entries_new, 3);
    CHECK_EQ(store->importer.report.sessions_new, 1);
    pi_export_is_same(store);
    CLEANUP(reply_freep) GetSessionResponse *reply = pi_session(store);
    CHECK_STR(reply->session->data_version, "3");
    CHECK_EQ(reply->session->entry_count, 3);
    CHECK_EQ(reply->session->message_count, 3);
    user(store, "d", "77ab", "d");
    pi_import_ok(store);
    pi_import_ok(store);
    CHECK_EQ(store->importer.report.entries_new, 4);
    pi_export_is_same(store);

    // The older file again, for example from a backup: it is refused.
    version_1(store);
    FILE *file = tmpfile();
    CHECK(file != NULL);
    CHECK_EQ(fwrite(store->text, 1, store->size, file), store->size);
    rewind(file);
    CHECK_EQ(pi_import(&store->importer, file, "file.jsonl"), STATUS_FAILED_PRECONDITION);
    fclose(file);
    CHECK_EQ(store->importer.report.entries_new, 4);
}
