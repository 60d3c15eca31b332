// Backup, restore and compaction, with a real tined.

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness.h"
#include "names.h"
#include "shell.h"
#include "store/open.h"
#include "store/store.h"
#include "tine.h"
#include "tine_calls.h"

#define FORMAT_1 SOURCE_DIR "/tests/store/fixtures/format-1.mdb.gz"

static char session_id[27];

static void make_session(Shell *shell)
{
    const char *id = shell_ok(shell, "tine --no-start call CreateSession '{\"session\": "
                                     "{\"project_dir\": \"/p\", \"slug\": \"one\", \"model\": "
                                     "{\"provider\": \"a\", \"name\": \"b\"}}}' "
                                     "| jq -r .session.id | tr -d '\\n'");
    CHECK_EQ(strlen(id), 26);
    snprintf(session_id, sizeof(session_id), "%s", id);
}

// Appends numbered messages as fast as possible. A message is complete if its two halves are equal.
typedef struct Load {
    atomic_bool is_over;
    atomic_uint acknowledged;
} Load;

static void append_number(Tine *tine, unsigned number)
{
    char text[8100];
    snprintf(text, sizeof(text), "%u %04000d|%u %04000d", number, 0, number, 0);
    Text content = TEXT__INIT;
    Part part = PART__INIT, *parts = &part;
    NewMessage message = NEW_MESSAGE__INIT;
    AppendMessageRequest request = APPEND_MESSAGE_REQUEST__INIT;
    AppendMessageResponse *response;
    content.text = text;
    part.kind_case = PART__KIND_TEXT;
    part.text = &content;
    message.role = ROLE_USER;
    message.n_parts = 1;
    message.parts = &parts;
    request.session_id = session_id;
    request.message = &message;
    CHECK_EQ(tine_append_message(tine, NULL, &request, &response), 0);
    protobuf_c_message_free_unpacked(&response->base, NULL);
}

static void *write_load(void *context)
{
    Load *load = context;
    Tine *tine;
    CHECK_EQ(tine_open(shell_url(), NULL, &tine), 0);
    for (unsigned i = 1; !atomic_load(&load->is_over); i++) {
        append_number(tine, i);
        atomic_store(&load->acknowledged, i);
    }
    tine_close(tine);
    return NULL;
}

// Opens the backup as a store and checks its messages: complete, numbered without a gap, and as
// many as expected.
static void check_numbers(const char *directory, unsigned least)
{
    char url[1024];
    Tine *tine;
    snprintf(url, sizeof(url), "embedded:%s/%s", test_dir(), directory);
    CHECK_EQ(tine_open(url, NULL, &tine), 0);
    MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = session_id;
    char cursor[512] = "";
    unsigned count = 0;
    do {
        MessagesForSessionResponse *page;
        request.cursor = cursor;
        CHECK_EQ(tine_messages_for_session(tine, NULL, &request, &page), 0);
        for (size_t i = 0; i < page->n_messages; i++) {
            const char *text = page->messages[i]->parts[0]->text->text, *half = strchr(text, '|');
            CHECK(half && strncmp(text, half + 1, (size_t)(half - text)) == 0);
            CHECK_EQ(strtoul(text, NULL, 10), ++count);
        }
        snprintf(cursor, sizeof(cursor), "%s", page->next_cursor);
        protobuf_c_message_free_unpacked(&page->base, NULL);
    } while (*cursor);
    CHECK(count >= least);
    tine_close(tine);
}

TEST(a_backup_under_load_has_all_writes_and_none_half)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_tined_start(shell);
    make_session(shell);
    Load load = {.is_over = false};
    pthread_t writer;
    CHECK_EQ(pthread_create(&writer, NULL, write_load, &load), 0);
    while (atomic_load(&load.acknowledged) < 5)
        sched_yield();
    for (unsigned i = 0; i < test_scaled(10); i++) {
        char name[32];
        unsigned before = atomic_load(&load.acknowledged);
        snprintf(name, sizeof(name), "backup-%u", i);
        shell_ok(shell, "tine backup %s %s", name, i % 2 ? "--compact" : "");
        shell_shows(shell, "no damage");
        shell_ok(shell, "tine check %s && rm %s/lock.mdb %s/tine.lock && ls %s", name, name, name,
                 name);
        shell_shows(shell, "no damage");
        CHECK(strstr(shell->output, "data.mdb\n") != NULL);
        check_numbers(name, before);
    }
    atomic_store(&load.is_over, true);
    pthread_join(writer, NULL);
}

TEST(a_backup_takes_the_store_s_place_and_the_old_one_is_kept)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_tined_start(shell);
    make_session(shell);
    shell_ok(shell, "tine backup before --json | jq -e '.sessions == 1 and .damage_count == 0'");
    shell_ok(shell, "tine call RenameSession '{\"session_id\": \"%s\", \"slug\": \"two\"}'",
             session_id);
    char instance[64];
    snprintf(instance, sizeof(instance), "%s", shell_ok(shell, "tine version -s | tail -n 1"));

    shell_fails(shell, 4, "tine restore-backup before");
    shell_says(shell, "stop it first");
    shell_fails(shell, 4, "tine check");
    shell_fails(shell, 4, "tine compact-db");
    shell_tined_stop(shell);
    shell_ok(shell, "tine check && tine restore-backup before --json > r && jq -r .kept r");
    char kept[1024];
    snprintf(kept, sizeof(kept), "%.*s", (int)strcspn(strstr(shell->output, "/"), "\n"),
             strstr(shell->output, "/"));
    shell_ok(shell, "tine --url embedded:%s call ListSessions | jq -r .sessions[].slug", kept);
    CHECK_STR(shell->output, "two\n");
    shell_tined_start(shell);
    shell_ok(shell, "tine call ListSessions | jq -r .sessions[].slug");
    CHECK_STR(shell->output, "one\n");
    CHECK(strcmp(instance, shell_ok(shell, "tine version -s | tail -n 1")) != 0);
    shell_ok(shell, "tine call ListEvents | jq -e '.events == null'");
    shell_tined_stop(shell);
    shell_ok(shell, "tine check && ls data/tine");
    CHECK(!strstr(shell->output, "partial"));
}

TEST(a_backup_is_not_written_over_and_not_of_another_tined_s_store)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_fails(shell, 3, "tine backup none");
    shell_tined_start(shell);
    make_session(shell);
    shell_ok(shell, "tine backup one");
    shell_fails(shell, 1, "tine backup one");
    shell_says(shell, "already exists");
    shell_fails(shell, 1,
                "TINE_DATA=$PWD/one tine call GetSession '{}'; "
                "cp -r one other && tine restore-backup one --data other2 && "
                "TINE_DATA=other2 tine backup two");
    shell_says(shell, "keeps another store");
    shell_ok(shell, "tine backup --data other2 two && ls");
    CHECK(!strstr(shell->output, "partial"));
    shell_fails(shell, 2, "tine --url tcp://127.0.0.1:1 backup three");
}

TEST(a_damaged_backup_is_refused)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_tined_start(shell);
    make_session(shell);
    shell_ok(shell, "tine backup good");
    shell_tined_stop(shell);
    shell_ok(shell, "cp -r good bad && dd if=/dev/zero of=bad/data.mdb bs=4096 seek=3 "
                    "count=100 conv=notrunc");
    shell_fails(shell, 1, "tine restore-backup bad");
    shell_ok(shell, "tine check && ls data/tine");
    CHECK(!strstr(shell->output, "partial") && !strstr(shell->output, "before"));
    shell_fails(shell, 3, "tine restore-backup nowhere");
}

TEST(a_backup_of_an_older_format_is_migrated_and_restored)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, "mkdir old && gzip -dc '" FORMAT_1 "' >old/data.mdb && cp -r old kept");
    shell_fails(shell, 1, "tine check old");
    shell_says(shell, "storage format 1");
    shell_ok(shell, "tine restore-backup old --data new && cmp old/data.mdb kept/data.mdb");
    shell_ok(shell, "tine check new && ls new");
    CHECK(!strstr(shell->output, "partial") && !strstr(shell->output, "before"));
    shell_ok(shell, "tine --url embedded:new call ListSessions '{\"status\": "
                    "\"SESSION_STATUS_BUSY\"}' | jq -r .sessions[].slug");
    CHECK_STR(shell->output, "busy\n");
}

// The test holds the lock of the writer, so the copy is caught halfway.
TEST(an_interrupted_backup_leaves_nothing_behind)
{
#if defined(__SANITIZE_THREAD__)
    SKIP("TSan holds a signal back while the copy waits for a lock");
#endif
    CLEANUP(shell_close) Shell *shell = shell_open();
    char path[1024];
    snprintf(path, sizeof(path), "%s/store", test_dir());
    StoreOptions options = {.directory = path};
    Store *store;
    Txn txn;
    CHECK_EQ(store_open(&options, NULL, &store), ERROR_NONE);
    CHECK_EQ(txn_begin(store, /* is_write= */ true, NULL, NULL, &txn), ERROR_NONE);
    shell_ok(shell, "tine backup --data store copy & backup=$!; "
                    "until ls copy.partial-$backup/data.mdb 2>/dev/null; do :; done; "
                    "kill $backup; wait $backup; echo ended by $?; ls");
    txn_abort(&txn);
    store_close(store);
    shell_shows(shell, "ended by 143\n");
    CHECK(!strstr(strstr(shell->output, "ended"), "partial"));
    // The next backup removes what an interrupted one has left.
    shell_ok(shell, "mkdir store/compact.partial-1 && touch store/compact.partial-1/data.mdb && "
                    "tine compact-db --data store && ls store");
    CHECK(!strstr(shell->output, "partial"));
}

TEST(compacting_returns_space_and_changes_nothing_else)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_fails(shell, 3, "tine compact-db");
    shell_tined_start(shell);
    make_session(shell);
    Tine *tine;
    CHECK_EQ(tine_open(shell_url(), NULL, &tine), 0);
    for (unsigned i = 1; i <= 60; i++)
        append_number(tine, i);
    tine_close(tine);
    shell_ok(shell,
             "for id in $(tine call MessagesForSession '{\"session_id\": \"%s\"}' | "
             "jq -r '.messages[10:][].id'); do "
             "tine call PurgeMessage '{\"message_id\": \"'$id'\"}' || exit 1; done; "
             "tine call MessagesForSession '{\"session_id\": \"%s\"}' > before",
             session_id, session_id);
    shell_tined_stop(shell);
    shell_ok(shell, "tine compact-db --json | jq -e '.bytes_after * 2 < .bytes_before'");
    shell_ok(shell, "tine check && ls data/tine");
    CHECK(!strstr(shell->output, "partial"));
    shell_tined_start(shell);
    shell_ok(shell, "tine call MessagesForSession '{\"session_id\": \"%s\"}' | cmp - before",
             session_id);
}

TEST(a_backup_has_a_manifest_that_check_and_restore_compare)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_tined_start(shell);
    make_session(shell);
    shell_ok(shell, "tine backup plain && tine backup --compact compact");
    shell_tined_stop(shell);
    shell_ok(shell, "if command -v xxhsum; then cd plain && xxhsum -c tine.manifest; fi");
    static const char *const NAMES[] = {"plain", "compact"};
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(*NAMES); i++) {
        shell_ok(shell, "tine check %s && tine check --json %s | jq -e .has_manifest", NAMES[i],
                 NAMES[i]);
        shell_shows(shell, "the files are as the manifest says");
        shell_ok(shell, "cp -r %s bad && echo >>bad/data.mdb", NAMES[i]);
        shell_fails(shell, 1, "tine check bad");
        shell_shows(shell, "manifest: bad/data.mdb has ");
        shell_shows(shell, "but the manifest says ");
        shell_fails(shell, 1, "tine check --json bad > json");
        shell_ok(shell, "jq -e '.damage_count == 1 and .counts.manifest == 1 and .has_manifest "
                        "and .damage[0].kind == \"manifest\"' json");
        shell_fails(shell, 1, "tine restore-backup bad");
        shell_says(shell, "but the manifest says ");
        shell_fails(shell, 1, "tine backup --data bad copy");
        shell_says(shell, "no backup was made");
        shell_ok(shell, "tine backup --damaged --data bad copy && tine check copy && "
                        "rm -r bad copy");
    }
    shell_ok(shell, "tine check && ls data/tine");
    CHECK(!strstr(shell->output, "partial") && !strstr(shell->output, "before"));
    CHECK(!strstr(shell->output, "tine.manifest"));
    shell_ok(shell, "tine restore-backup plain && ls -R data/tine");
    CHECK(!strstr(shell->output, "tine.manifest"));
}

TEST(a_backup_that_lost_its_data_is_damaged_and_not_missing)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, "tine --url embedded:store new && tine backup --data store lost && "
                    "rm lost/data.mdb");
    shell_fails(shell, 1, "tine check lost");
    shell_shows(shell, "manifest: lost/data.mdb is missing");
    shell_fails(shell, 1, "tine check --json lost > json");
    shell_ok(shell, "jq -e '.damage | map(.kind) == [\"manifest\", \"file\"]' json");
    shell_fails(shell, 1, "tine restore-backup lost");
    shell_says(shell, "data.mdb is missing");
}

TEST(a_backup_without_a_manifest_or_opened_for_writing_is_checked_as_before)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, "tine --url embedded:store new && tine backup --data store old && "
                    "rm old/tine.manifest && tine check old && tine check --json old > json && "
                    "jq -e '.has_manifest == false' json && tine restore-backup old --data new");
    shell_ok(shell, "tine backup --data store opened && tine --url embedded:opened new && "
                    "tine check opened && ls opened");
    CHECK(!strstr(shell->output, "tine.manifest"));
    shell_ok(shell, "tine backup --data store damaged && "
                    "sed -i s/storage_format/storage_former/ damaged/tine.manifest");
    shell_fails(shell, 1, "tine check damaged");
    shell_shows(shell, "manifest: damaged/tine.manifest is damaged: ");
    shell_fails(shell, 1, "tine restore-backup damaged");
    shell_says(shell, "tine.manifest is damaged: ");
}
