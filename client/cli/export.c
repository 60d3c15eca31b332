// Exports one session as lines of JSON.

#include "export.h"

#include <string.h>

#include "json_message.h"

static void write_line(FILE *out, const char *kind, const ProtobufCMessage *message)
{
    fprintf(out, "{\"%s\":", kind);
    json_message_write(out, message, JSON_LINE);
    fputs("}\n", out);
}

static int check_output(FILE *out)
{
    return ferror(out) ? cli_say(EXIT_FAILED, "the output could not be written: %m") : EXIT_OK;
}

// Writes what the session inherited from a session that was purged: no other export has it.
static int write_inherited(Cli *cli, FILE *out, const Session *session)
{
    static MessageKind ALL[] = {
        MESSAGE_KIND_CONVERSATION, MESSAGE_KIND_INJECTED, MESSAGE_KIND_BRANCH_SUMMARY,
        MESSAGE_KIND_COMPACTION,   MESSAGE_KIND_SETTING,  MESSAGE_KIND_LABEL,
        MESSAGE_KIND_NAME,         MESSAGE_KIND_CUSTOM,
    };
    MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
    CLEANUP(message_freep) MessagesForSessionResponse *reply = NULL;
    request.session_id = session->id;
    request.kinds = ALL;
    request.n_kinds = sizeof(ALL) / sizeof(*ALL);
    do {
        MessagesForSessionResponse *next = NULL;
        if (tine_messages_for_session(cli->tine, &cli->call, &request, &next)) {
            return cli_fail(cli, &cli->status);
        }
        message_freep(&reply);
        reply = next;
        for (size_t i = 0; i < reply->n_messages; i++) {
            const Message *message = reply->messages[i];
            if (strcmp(message->session_id, session->id) == 0) return check_output(out);
            write_line(out, "entry", &message->base);
        }
        request.cursor = reply->next_cursor;
    } while (*request.cursor && !ferror(out));
    return check_output(out);
}

static int write_entries(Cli *cli, FILE *out, char *id)
{
    ListMessagesRequest request = LIST_MESSAGES_REQUEST__INIT;
    CLEANUP(message_freep) ListMessagesResponse *reply = NULL;
    request.session_id = id;
    request.deleted = DELETED_FILTER_INCLUDE;
    do {
        ListMessagesResponse *next = NULL;
        if (tine_list_messages(cli->tine, &cli->call, &request, &next)) {
            return cli_fail(cli, &cli->status);
        }
        message_freep(&reply);
        reply = next;
        for (size_t i = 0; i < reply->n_messages; i++) {
            write_line(out, "entry", &reply->messages[i]->base);
        }
        request.cursor = reply->next_cursor;
    } while (*request.cursor && !ferror(out));
    return check_output(out);
}

static int write_originals(Cli *cli, FILE *out, char *id)
{
    ListOriginalsRequest request = LIST_ORIGINALS_REQUEST__INIT;
    CLEANUP(message_freep) ListOriginalsResponse *reply = NULL;
    request.session_id = id;
    do {
        ListOriginalsResponse *next = NULL;
        if (tine_list_originals(cli->tine, &cli->call, &request, &next)) {
            return cli_fail(cli, &cli->status);
        }
        message_freep(&reply);
        reply = next;
        for (size_t i = 0; i < reply->n_originals; i++) {
            write_line(out, "original", &reply->originals[i]->base);
        }
        request.cursor = reply->next_cursor;
    } while (*request.cursor && !ferror(out));
    return check_output(out);
}

static int write_calls(Cli *cli, FILE *out, char *id)
{
    ListCallsRequest request = LIST_CALLS_REQUEST__INIT;
    CLEANUP(message_freep) ListCallsResponse *reply = NULL;
    request.session_id = id;
    do {
        ListCallsResponse *next = NULL;
        if (tine_list_calls(cli->tine, &cli->call, &request, &next)) {
            return cli_fail(cli, &cli->status);
        }
        message_freep(&reply);
        reply = next;
        for (size_t i = 0; i < reply->n_calls; i++) {
            write_line(out, "call", &reply->calls[i]->base);
        }
        request.cursor = reply->next_cursor;
    } while (*request.cursor && !ferror(out));
    return check_output(out);
}

static int write_memories(Cli *cli, FILE *out, char *id)
{
    ListSessionMemoriesRequest request = LIST_SESSION_MEMORIES_REQUEST__INIT;
    CLEANUP(message_freep) ListSessionMemoriesResponse *reply = NULL;
    request.session_id = id;
    do {
        ListSessionMemoriesResponse *next = NULL;
        if (tine_list_session_memories(cli->tine, &cli->call, &request, &next)) {
            return cli_fail(cli, &cli->status);
        }
        message_freep(&reply);
        reply = next;
        for (size_t i = 0; i < reply->n_memories; i++) {
            write_line(out, "memory", &reply->memories[i]->base);
        }
        request.cursor = reply->next_cursor;
    } while (*request.cursor && !ferror(out));
    return check_output(out);
}

static int write_todos(Cli *cli, FILE *out, char *id)
{
    GetSessionTodosRequest request = GET_SESSION_TODOS_REQUEST__INIT;
    CLEANUP(message_freep) GetSessionTodosResponse *reply = NULL;
    request.session_id = id;
    if (tine_get_session_todos(cli->tine, &cli->call, &request, &reply)) {
        return cli_fail(cli, &cli->status);
    }
    if (reply->todos && reply->todos->updated_at) write_line(out, "todos", &reply->todos->base);
    return check_output(out);
}

// Whether the session reads entries of a parent that is gone.
static bool is_orphan(Cli *cli, const Session *session)
{
    if (!*session->fork_message_id) return false;
    if (!*session->parent_id) return true;
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    CLEANUP(message_freep) GetSessionResponse *reply = NULL;
    request.session_id = session->parent_id;
    return tine_get_session(cli->tine, &cli->call, &request, &reply) == STATUS_NOT_FOUND;
}

int export_session(Cli *cli, FILE *out, const char *id)
{
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    CLEANUP(message_freep) GetSessionResponse *reply = NULL;
    request.session_id = (char *)(uintptr_t)id;
    if (tine_get_session(cli->tine, &cli->call, &request, &reply)) {
        return cli_fail(cli, &cli->status);
    }
    write_line(out, "session", &reply->session->base);
    int code = is_orphan(cli, reply->session) ? write_inherited(cli, out, reply->session) : EXIT_OK;
    if (!code) code = write_calls(cli, out, reply->session->id);
    if (!code) code = write_entries(cli, out, reply->session->id);
    if (!code) code = write_originals(cli, out, reply->session->id);
    if (!code) code = write_memories(cli, out, reply->session->id);
    if (!code) code = write_todos(cli, out, reply->session->id);
    return code;
}
