// tine check reports each kind of damage, which is planted into copies of one store, and damage of
// the file.

#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "names.h"
#include "shell.h"
#include "store/open.h"
#include "store/session.h"
#include "store/store.h"

// IDs of the records in the store.
typedef struct Ids {
    Ulid session, fork, message, marker;
} Ids;

static Ids ids;

static Ulid id_of(const char *text)
{
    Ulid id;
    CHECK(ulid_parse(slice(text, ULID_TEXT_BYTES), &id));
    return id;
}

// Creates a session with a marker, a memory, todos, a tool part and an external ID, and a fork of
// it.
static void make_store(Shell *shell)
{
    char session[27];
    shell_ok(shell, "cat > make <<'END'\n"
                    "set -e\n"
                    "call() { tine --url embedded:whole call \"$@\"; }\n"
                    "s=$(call CreateSession '{\"session\": {\"project_dir\": \"/p\", \"slug\": "
                    "\"one\", \"model\": {\"provider\": \"a\", \"name\": \"b\"}}}' | "
                    "jq -r .session.id)\n"
                    "m=$(call AppendMessage '{\"session_id\": \"'$s'\", \"message\": {\"role\": "
                    "\"user\", \"external\": {\"source\": \"x\", \"id\": \"1\"}, \"parts\": "
                    "[{\"tool_use\": {\"id\": \"t\", \"name\": \"read\"}}]}}' | "
                    "jq -r .receipt.id)\n"
                    "k=$(call AddCompactionMarker '{\"session_id\": \"'$s'\", \"marker\": "
                    "{\"before_message_id\": \"'$m'\"}}' | jq -r .entry.id)\n"
                    "f=$(call ForkSession '{\"session_id\": \"'$s'\", \"at_head\": true}' | "
                    "jq -r .session.id)\n"
                    "call ReplaceSessionTodos '{\"session_id\": \"'$s'\", \"items\": "
                    "[{\"content\": \"c\"}]}' >/dev/null\n"
                    "echo $s $f $m $k\n"
                    "END\n"
                    "bash make");
    const char *at = shell->output;
    ids = (Ids){id_of(at), id_of(at + 27), id_of(at + 54), id_of(at + 81)};
    snprintf(session, sizeof(session), "%.26s", at);
    shell_ok(shell, "tine check whole");
}

typedef void (*Plant)(Txn *txn);

static void delete_row(Txn *txn, StoreTable table, Key key)
{
    CHECK_EQ(txn_delete(txn, table, &key), ERROR_NONE);
}

static void put_row(Txn *txn, StoreTable table, Key key, Slice value)
{
    CHECK_EQ(txn_put(txn, table, &key, value), ERROR_NONE);
}

static Key first_chunk(Key key)
{
    return key_with_chunk(&key, 0);
}

static void plant_counts(Txn *txn)
{
    Session *head;
    CHECK_EQ(session_head(txn, ids.session, &head), ERROR_NONE);
    head->entry_count++;
    CHECK_EQ(session_put_head(txn, ids.session, head), ERROR_NONE);
}

static void plant_lost_message(Txn *txn)
{
    delete_row(txn, TABLE_MESSAGES, first_chunk(key_of_ids(ids.session, ids.message)));
}

static void plant_owner(Txn *txn)
{
    delete_row(txn, TABLE_MESSAGE_OWNER, key_of_id(ids.message));
}

static void plant_child(Txn *txn)
{
    delete_row(txn, TABLE_CHILDREN, key_of_ids(ids.session, ids.fork));
}

static void plant_index(Txn *txn)
{
    Hash hash = hash_bytes(slice_of("other"));
    put_row(txn, TABLE_SESSION_INDEX, key_session_index(LISTING_SLUG, hash, ids.session),
            (Slice){NULL, 0});
}

static void plant_active(Txn *txn)
{
    put_row(txn, TABLE_BY_ACTIVE, key_by_active(1, ids.session), (Slice){NULL, 0});
}

static void plant_marker(Txn *txn)
{
    put_row(txn, TABLE_MARKERS, key_marker(ids.session, MESSAGE_KIND_COMPACTION, ids.message),
            ulid_slice(&ids.message));
}

static void plant_part(Txn *txn)
{
    delete_row(txn, TABLE_PARTS, key_part(ids.session, PART__KIND_TOOL_USE, ids.message, 0));
}

static void plant_reader(Txn *txn)
{
    delete_row(txn, TABLE_READERS, key_of_ids(ids.session, ids.fork));
}

static void plant_external(Txn *txn)
{
    Hash hash = hash_pair(slice_of("x"), slice_of("1"));
    delete_row(txn, TABLE_MESSAGE_EXTERNAL, key_message_external(hash, ids.session));
}

static void plant_event(Txn *txn)
{
    delete_row(txn, TABLE_EVENTS, first_chunk(key_event(2)));
}

static void plant_unreadable(Txn *txn)
{
    put_row(txn, TABLE_TODOS, first_chunk(key_of_id(ids.session)), slice("\xff", 1));
}

static void plant_orphan(Txn *txn)
{
    Ulid nobody = ulid_next(ids.session);
    put_row(txn, TABLE_MEMORIES, first_chunk(key_of_ids(nobody, ids.message)), (Slice){NULL, 0});
}

static void plant_rows(Txn *txn)
{
    delete_row(txn, TABLE_SESSIONS, first_chunk(key_session(ids.fork, SESSION_ROW_HEAD)));
}

static const struct {
    const char *kind;
    Plant plant;
} DAMAGES[] = {
    {"session_counts", plant_counts}, {"message_sequence", plant_lost_message},
    {"message_owner", plant_owner},   {"children", plant_child},
    {"session_index", plant_index},   {"by_active", plant_active},
    {"marker", plant_marker},         {"part", plant_part},
    {"reader", plant_reader},         {"message_external", plant_external},
    {"event_chain", plant_event},     {"unreadable", plant_unreadable},
    {"orphan", plant_orphan},         {"session_rows", plant_rows},
};

static void plant(const char *name, Plant damage)
{
    char path[1024];
    ErrorDetail detail = {{0}};
    Arena arena;
    Store *store;
    Txn txn;
    snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
    StoreOptions options = {.directory = path, .is_ephemeral = true};
    arena_init(&arena, 1 << 20);
    CHECK_EQ(store_open(&options, &detail, &store), ERROR_NONE);
    CHECK_EQ(txn_begin(store, /* is_write= */ true, &arena, &detail, &txn), ERROR_NONE);
    damage(&txn);
    CHECK_EQ(txn_commit(&txn), ERROR_NONE);
    store_close(store);
    arena_free(&arena);
}

TEST(each_kind_of_damage_is_found_and_named)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    make_store(shell);
    for (size_t i = 0; i < sizeof(DAMAGES) / sizeof(*DAMAGES); i++) {
        const char *kind = DAMAGES[i].kind;
        shell_ok(shell, "cp -r whole %s", kind);
        plant(kind, DAMAGES[i].plant);
        char line[64];
        snprintf(line, sizeof(line), "%s: ", kind);
        shell_fails(shell, 1, "tine check %s", kind);
        shell_shows(shell, line);
        shell_fails(shell, 1, "tine check --json %s > json", kind);
        shell_ok(shell,
                 "jq -e '.damage_count > 0 and .counts.%s > 0 and "
                 "(.damage | map(.kind) | contains([\"%s\"]))' json",
                 kind, kind);
    }
}

TEST(a_file_that_is_broken_is_damage_and_no_crash)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    make_store(shell);
    shell_ok(shell, "cp -r whole short && truncate -s 12288 short/data.mdb; "
                    "cp -r whole garbage && dd if=/dev/urandom of=garbage/data.mdb bs=4096 seek=2 "
                    "count=60 conv=notrunc; "
                    "cp -r whole headless && dd if=/dev/zero of=headless/data.mdb bs=4096 count=2 "
                    "conv=notrunc; "
                    "cp -r whole other && echo 'not a store' > other/data.mdb");
    static const char *const NAMES[] = {"short", "garbage", "headless", "other"};
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(*NAMES); i++) {
        shell_fails(shell, 1, "tine check %s", NAMES[i]);
        shell_shows(shell, "file: ");
        shell_fails(shell, 1, "tine check --json %s > json", NAMES[i]);
        shell_ok(shell, "jq -e '.damage[-1].kind == \"file\" and .damage_count > 0' json");
    }
}

// A page in the middle of a tree: each program tells it, or names the check that does.
TEST(a_damaged_page_is_told_by_whatever_reads_the_file)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    make_store(shell);
    shell_ok(shell, "for i in $(seq 40); do tine --url embedded:whole append one \"$(head -c 3000 "
                    "/dev/zero | tr '\\0' x)\" >/dev/null || exit 1; done; tine check whole; "
                    "cp -r whole bad; size=$(stat -c %%s bad/data.mdb); "
                    "for page in $(seq 20 3 $((size / 4096 - 1))); do printf '\\377' | "
                    "dd of=bad/data.mdb bs=1 seek=$((page * 4096 + 10)) conv=notrunc 2>/dev/null; "
                    "done");
    shell_fails(shell, 1, "tine check bad");
    shell_shows(shell, "file: page ");
    shell_shows(shell, "bad/data.mdb is damaged in ");
    shell_fails(shell, 1, "tine check --limit 1 bad | grep -c 'file: page' && false");
    shell_shows(shell, "1\n");
    shell_fails(shell, 1, "tine check --json bad > json");
    shell_ok(shell, "jq -e '.damage_count > 1 and .damage[-1].kind == \"file\" and "
                    "(.damage[0].text | startswith(\"page \")) and .damage[0].table == \"\"' json");
    shell_fails(shell, 1, "tine check --json --limit 0 bad > json");
    shell_ok(shell, "jq -e '.damage_count > 1 and (.damage | length) == 1' json");
    shell_fails(shell, 1, "tine backup --data bad copy");
    shell_says(shell, "no backup was made");
    shell_fails(shell, 1, "tine backup --compact --damaged --data bad copy");
    shell_fails(shell, 1, "tine compact-db --data bad");
    shell_says(shell, "is damaged in ");
    shell_fails(shell, 1, "tine restore-backup bad --data new");
    shell_ok(shell, "tine backup --damaged --data bad copy && cmp bad/data.mdb copy/data.mdb");
    shell_shows(shell, "damaged");
}

TEST(a_check_makes_no_store_where_there_is_none)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_fails(shell, 3, "tine check nowhere");
    shell_says(shell, "there is no store in");
    shell_fails(shell, 2, "ls nowhere");
    shell_fails(shell, 3, "tine check");
    shell_fails(shell, 2, "ls data");
}
