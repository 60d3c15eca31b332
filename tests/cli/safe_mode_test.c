// A tined in safe mode, as its user sees it: what can be read is listed and exported, the rest is
// named, and a check that finds no damage ends it.

#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "shell.h"
#include "store/open.h"
#include "store/session.h"

static const char END_TINED[] = "kill $(cat data/tine/tine.lock); flock data/tine/tine.lock true; "
                                "while [ -e tine/tine.sock.lock ]; do sleep 0.01; done";

static void make_sessions(Shell *shell, char out[2][27])
{
    shell_ok(shell, "mkdir data && for slug in bad good; do "
                    "s=$(tine --url embedded:data/tine call CreateSession '{\"session\": "
                    "{\"project_dir\": \"/p\", \"slug\": \"'$slug'\", \"model\": {\"provider\": "
                    "\"a\", \"name\": \"b\"}}}' | jq -r .session.id); echo $s; "
                    "tine --url embedded:data/tine call AppendMessage '{\"session_id\": \"'$s'\", "
                    "\"message\": {\"role\": \"user\", \"parts\": [{\"text\": {\"text\": "
                    "\"kept\"}}]}}' >/dev/null; done");
    for (size_t i = 0; i < 2; i++)
        snprintf(out[i], 27, "%.26s", shell->output + 27 * i);
}

static Ulid id_of(const char *text)
{
    Ulid id;
    CHECK(ulid_parse(slice(text, ULID_TEXT_BYTES), &id));
    return id;
}

// Exchanges a record of a session with `*inout`, which has room for `size_max` bytes: its settings,
// or with `message` that message.
static void exchange(const char *session, const char *message, uint8_t *inout, size_t *inout_size,
                     size_t size_max)
{
    char directory[4200];
    snprintf(directory, sizeof(directory), "%s/data/tine", test_dir());
    StoreOptions options = {.directory = directory};
    Store *store = NULL;
    Txn txn;
    Ulid id = id_of(session);
    uint8_t before[4096];
    CHECK_EQ(store_open(&options, NULL, &store), ERROR_NONE);
    CHECK_EQ(txn_begin(store, /* is_write= */ true, NULL, NULL, &txn), ERROR_NONE);
    StoreTable table = message ? TABLE_MESSAGES : TABLE_SESSIONS;
    Key record = message ? key_of_ids(id, id_of(message)) : key_session(id, SESSION_ROW_SETTINGS);
    Key key = key_with_chunk(&record, 0);
    Slice value;
    bool found;
    CHECK_EQ(txn_get(&txn, table, &key, &found, &value), ERROR_NONE);
    CHECK(found && value.size <= size_max && value.size <= sizeof(before));
    size_t size = value.size;
    memcpy(before, value.bytes, size);
    CHECK_EQ(txn_put(&txn, table, &key, slice(inout, *inout_size)), ERROR_NONE);
    CHECK_EQ(txn_commit(&txn), ERROR_NONE);
    store_close(store);
    memcpy(inout, before, size);
    *inout_size = size;
}

TEST(safe_mode_lists_and_exports_the_rest_until_the_store_is_clean)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    char sessions[2][27];
    uint8_t settings[4096] = {0xff, 0xff, 0xff};
    size_t size = 3;
    make_sessions(shell, sessions);
    exchange(sessions[0], NULL, settings, &size, sizeof(settings));
    shell_ok(shell, "for at in 1 9; do echo started 170000000$at ended 170000000$at signal 11 in "
                    "purge; done >data/tine/tine.crashes");

    shell_fails(shell, 1, "tine ls");
    shell_shows(shell, sessions[1]);
    CHECK(strstr(shell->output, sessions[0]) == NULL);
    shell_says(shell, "1 session cannot be read and is left out");
    shell_fails(shell, 1, "tine export --all -o all");
    shell_says(shell, "1 session cannot be read and is left out");
    shell_ok(shell, "cat all");
    shell_shows(shell, sessions[1]);
    shell_shows(shell, "kept");
    shell_fails(shell, 1, "tine export %s", sessions[0]);
    shell_ok(shell, "tine export %s", sessions[1]);
    shell_ok(shell, "tine stats | head -1");
    shell_shows(shell, "safe mode");
    shell_ok(shell, "tine ping");
    shell_says(shell, "safe mode");
    shell_fails(shell, 4, "tine append %s more --timeout 2000", sessions[1]);
    shell_says(shell, "two starts within a minute ended by a crash");
    shell_says(shell, "--no-safe");
    shell_ok(shell, "grep -h 'session=%s' -r state", sessions[0]);
    shell_ok(shell, "%s", END_TINED);

    shell_fails(shell, 1, "tine check");
    shell_ok(shell, "test -s data/tine/tine.crashes");
    exchange(sessions[0], NULL, settings, &size, sizeof(settings));
    shell_ok(shell, "tine check");
    shell_says(shell, "leaves safe mode");
    shell_ok(shell, "test ! -e data/tine/tine.crashes");
    shell_ok(shell, "tine ls");
    shell_shows(shell, sessions[0]);
    shell_ok(shell, "%s", END_TINED);
}

TEST(an_export_goes_on_after_a_session_that_cannot_be_read)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    char sessions[2][27], message[27];
    uint8_t bytes[4096] = {0xff, 0xff, 0xff};
    size_t size = 3;
    make_sessions(shell, sessions);
    shell_ok(shell,
             "tine --url embedded:data/tine call ListMessages '{\"session_id\": \"%s\"}' | "
             "jq -r .messages[0].id",
             sessions[0]);
    snprintf(message, sizeof(message), "%.26s", shell->output);
    exchange(sessions[0], message, bytes, &size, sizeof(bytes));
    shell_fails(shell, 1, "tine export --all -o all");
    shell_says(shell, sessions[0]);
    shell_says(shell, "is not whole in the export");
    shell_ok(shell, "grep kept all");
    shell_shows(shell, sessions[1]);
    shell_ok(shell, "tine ls");
    shell_shows(shell, sessions[0]);
    shell_ok(shell, "%s", END_TINED);
}
