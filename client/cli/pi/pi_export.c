// The export: the session's log and its originals side by side, both in the log's order.

#include "pi/pi_export.h"

#include <stdlib.h>
#include <string.h>

#include "base/ulid.h"
#include "pi/pi_entry.h"
#include "pi/pi_write.h"

enum { WALK_COUNT_MAX = 1000 * 1000, NAME_BYTES = 512 };

typedef struct Export {
    Cli *cli;
    FILE *out;
    Session *session; // borrowed
    bool is_line_open; // what was written last does not end its line
    bool uses_originals;

    ListOriginalsResponse *originals; // a page; owned
    size_t next;                      // of it

    // The entry that was written last, whose child usually comes next.
    char last_id[ID_BYTES], last_name[NAME_BYTES];
} Export;

static int fail(const Export *export)
{
    return cli_fail(export->cli, &export->cli->status);
}

static int check_output(const Export *export)
{
    return ferror(export->out) ? cli_say(EXIT_FAILED, "the output could not be written: %m")
                               : EXIT_OK;
}

static const char *name_of(const Message *message)
{
    bool is_pi = message->external && strcmp(message->external->source, PI_SOURCE) == 0;
    return is_pi ? message->external->id : message->id;
}

static int get(const Export *export, const char *id, GetMessageResponse **out)
{
    GetMessageRequest request = GET_MESSAGE_REQUEST__INIT;
    request.by_case = TINE__V1__GET_MESSAGE_REQUEST__BY_MESSAGE_ID;
    request.message_id = (char *)(uintptr_t)id;
    return tine_get_message(export->cli->tine, &export->cli->call, &request, out);
}

// What pi calls an entry. What is no id of ours is pi's own word already.
static void find_name(const Export *export, const char *id, char out[NAME_BYTES])
{
    snprintf(out, NAME_BYTES, "%s", id);
    if (!*id) return;
    if (strcmp(id, export->last_id) == 0) {
        snprintf(out, NAME_BYTES, "%s", export->last_name);
        return;
    }
    CLEANUP(message_freep) GetMessageResponse *reply = NULL;
    Ulid ulid;
    if (!ulid_parse(slice_of(id), &ulid) || get(export, id, &reply)) return;
    snprintf(out, NAME_BYTES, "%s", name_of(reply->message));
}

// The first entry that a compaction keeps: the one after its cut-off on the way to it. Itself, if
// it keeps nothing.
static int find_first_kept(const Export *export, const Message *message, char out[NAME_BYTES])
{
    const Marker *marker = message->marker;
    char at[ID_BYTES];
    snprintf(out, NAME_BYTES, "%s", name_of(message));
    if (*marker->first_kept_external) {
        snprintf(out, NAME_BYTES, "%s", marker->first_kept_external);
        return EXIT_OK;
    }
    if (!marker->keep_all && !*marker->before_message_id) return EXIT_OK;
    snprintf(at, sizeof(at), "%s", message->parent_id);
    for (size_t i = 0; i < WALK_COUNT_MAX && *at; i++) {
        if (strcmp(at, marker->before_message_id) == 0) break;
        CLEANUP(message_freep) GetMessageResponse *reply = NULL;
        if (get(export, at, &reply)) return fail(export);
        snprintf(out, NAME_BYTES, "%s", name_of(reply->message));
        snprintf(at, sizeof(at), "%s", reply->message->parent_id);
    }
    return EXIT_OK;
}

static int write_entry(Export *export, const Message *message)
{
    char parent[NAME_BYTES], target[NAME_BYTES], first_kept[NAME_BYTES] = "";
    int code = message->marker ? find_first_kept(export, message, first_kept) : EXIT_OK;
    if (code) return code;
    find_name(export, message->parent_id, parent);
    find_name(export, message->target_id, target);
    PiNames names = {name_of(message), parent, target, first_kept};
    if (export->is_line_open) putc('\n', export->out);
    export->is_line_open = false;
    return pi_write_entry(export->out, message, &names) ? cli_say(EXIT_FAILED, "out of memory")
                                                        : check_output(export);
}

static int next_page(Export *export)
{
    ListOriginalsRequest request = LIST_ORIGINALS_REQUEST__INIT;
    ListOriginalsResponse *page = NULL;
    request.session_id = export->session->id;
    if (export->originals) request.cursor = export->originals->next_cursor;
    if (tine_list_originals(export->cli->tine, &export->cli->call, &request, &page)) {
        return fail(export);
    }
    message_freep(&export->originals);
    export->originals = page;
    export->next = 0;
    return EXIT_OK;
}

// The original of an entry, if it has one: they come in the same order.
static int find_original(Export *export, const char *id, const Original **out)
{
    *out = NULL;
    while (export->uses_originals) {
        if (!export->originals || export->next == export->originals->n_originals) {
            if (export->originals && !*export->originals->next_cursor) break;
            int code = next_page(export);
            if (code) return code;
            continue;
        }
        const Original *original = export->originals->originals[export->next];
        int order = strcmp(original->message_id, id);
        if (order > 0) break;
        export->next++;
        if (order == 0) {
            *out = original;
            break;
        }
    }
    return EXIT_OK;
}

static int write_one(Export *export, const Message *message)
{
    const Original *original = NULL;
    int code = find_original(export, message->id, &original);
    if (code) return code;
    if (original && !message->deleted_at && original->content.len > 0) {
        const uint8_t *bytes = original->content.data;
        size_t size = original->content.len;
        if (export->is_line_open && bytes[0] != '\n' && bytes[0] != '\r') putc('\n', export->out);
        fwrite(bytes, 1, size, export->out);
        export->is_line_open = bytes[size - 1] != '\n';
        code = check_output(export);
    } else {
        code = write_entry(export, message);
    }
    snprintf(export->last_id, sizeof(export->last_id), "%s", message->id);
    snprintf(export->last_name, sizeof(export->last_name), "%s", name_of(message));
    return code;
}

// What a fork inherited is written out: a file of pi's stands for itself.
static int write_inherited(Export *export)
{
    static MessageKind ALL[] = {
        MESSAGE_KIND_CONVERSATION, MESSAGE_KIND_INJECTED, MESSAGE_KIND_BRANCH_SUMMARY,
        MESSAGE_KIND_COMPACTION,   MESSAGE_KIND_SETTING,  MESSAGE_KIND_LABEL,
        MESSAGE_KIND_NAME,         MESSAGE_KIND_CUSTOM,
    };
    MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
    CLEANUP(message_freep) MessagesForSessionResponse *reply = NULL;
    request.session_id = export->session->id;
    request.kinds = ALL;
    request.n_kinds = sizeof(ALL) / sizeof(*ALL);
    int code = EXIT_OK;
    do {
        MessagesForSessionResponse *next = NULL;
        if (tine_messages_for_session(export->cli->tine, &export->cli->call, &request, &next)) {
            return fail(export);
        }
        message_freep(&reply);
        reply = next;
        for (size_t i = 0; i < reply->n_messages && !code; i++) {
            const Message *message = reply->messages[i];
            if (strcmp(message->session_id, export->session->id) == 0) return EXIT_OK;
            code = write_entry(export, message);
            snprintf(export->last_id, sizeof(export->last_id), "%s", message->id);
            snprintf(export->last_name, sizeof(export->last_name), "%s", name_of(message));
        }
        request.cursor = reply->next_cursor;
    } while (!code && *request.cursor);
    return code;
}

static int write_log(Export *export)
{
    ListMessagesRequest request = LIST_MESSAGES_REQUEST__INIT;
    CLEANUP(message_freep) ListMessagesResponse *reply = NULL;
    request.session_id = export->session->id;
    request.deleted = DELETED_FILTER_INCLUDE;
    int code = EXIT_OK;
    do {
        ListMessagesResponse *next = NULL;
        if (tine_list_messages(export->cli->tine, &export->cli->call, &request, &next)) {
            return fail(export);
        }
        message_freep(&reply);
        reply = next;
        for (size_t i = 0; i < reply->n_messages && !code; i++) {
            code = write_one(export, reply->messages[i]);
        }
        request.cursor = reply->next_cursor;
    } while (!code && *request.cursor);
    return code;
}

// A file of version 1 says nothing of branches: it comes back as it was only if it is all there is.
static int choose_originals(Export *export, bool is_pi)
{
    export->uses_originals = is_pi;
    if (!is_pi || strcmp(export->session->data_version, "1") != 0) return EXIT_OK;
    uint64_t count = 0;
    int code = EXIT_OK;
    do {
        code = next_page(export);
        if (!code) count += export->originals->n_originals;
    } while (!code && *export->originals->next_cursor);
    message_freep(&export->originals);
    export->originals = NULL;
    export->uses_originals = count == export->session->next_sequence;
    return code;
}

static int write_session(Export *export)
{
    const Session *session = export->session;
    bool is_pi = session->external && strcmp(session->external->source, PI_SOURCE) == 0 &&
                 *session->data_json;
    int code = choose_originals(export, is_pi);
    if (code) return code;
    if (is_pi && (export->uses_originals || strcmp(session->data_version, "1") != 0)) {
        fputs(session->data_json, export->out);
        export->is_line_open = true;
    } else {
        pi_write_header(export->out, session);
    }
    if (*session->fork_message_id) code = write_inherited(export);
    if (!code) code = write_log(export);
    if (!code && session->next_sequence == 0 && export->is_line_open) putc('\n', export->out);
    return code ? code : check_output(export);
}

int pi_export(Cli *cli, FILE *out, char *session)
{
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    CLEANUP(message_freep) GetSessionResponse *reply = NULL;
    request.session_id = session;
    if (tine_get_session(cli->tine, &cli->call, &request, &reply)) {
        return cli_fail(cli, &cli->status);
    }
    Export export = {.cli = cli, .out = out, .session = reply->session};
    int code = write_session(&export);
    message_freep(&export.originals);
    return code;
}
