// Finds records by the names that people use.

#include "find.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "importers/agents.h"
#include "progress.h"

enum {
    PREFIX_BYTES_MIN = 4,
    BEFORE_MAX = 999, // @last~999
    CANDIDATES_MAX = 20,
};

static bool is_id_character(char character)
{
    int upper = toupper((unsigned char)character);
    return isdigit(upper) || (upper >= 'A' && upper <= 'Z' && !strchr("ILOU", upper));
}

// Returns whether the text is an ID or the beginning of one, and copies it in upper case. An ID has
// 128 bits, so its first character is at most 7.
static bool read_prefix(const char *text, char out[ID_BYTES])
{
    size_t size = strlen(text);
    if (size < PREFIX_BYTES_MIN || size >= ID_BYTES || text[0] > '7') return false;
    for (size_t i = 0; i <= size; i++) {
        if (text[i] && !is_id_character(text[i])) return false;
        out[i] = (char)toupper((unsigned char)text[i]);
    }
    return true;
}

// Reads "@last~2" as 2. Returns false for anything else.
static bool read_before(const char *text, const char *name, size_t *out)
{
    size_t size = strlen(name);
    if (strncmp(text, name, size) != 0) return false;
    text += size;
    *out = 0;
    if (!*text) return true;
    char *end;
    unsigned long number = strtoul(text + 1, &end, 10);
    *out = number;
    return *text == '~' && isdigit((unsigned char)text[1]) && !*end && number <= BEFORE_MAX;
}

static int find_last(Cli *cli, const char *text, size_t before, SessionName *out)
{
    ListSessionsRequest request = LIST_SESSIONS_REQUEST__INIT;
    request.order = SESSION_ORDER_LAST_ACTIVE;
    request.limit = (uint32_t)before + 1;
    CLEANUP(message_freep) ListSessionsResponse *reply = NULL;
    size_t seen = 0;
    for (;;) {
        ListSessionsResponse *next = NULL;
        if (tine_list_sessions(cli->tine, &cli->call, &request, &next)) {
            return cli_fail(cli, &cli->status);
        }
        message_freep(&reply);
        reply = next;
        if (before - seen < reply->n_sessions) break;
        seen += reply->n_sessions;
        request.cursor = reply->next_cursor;
        if (*reply->next_cursor) continue;
        if (seen == 0)
            return cli_say(EXIT_NOT_FOUND, "there are no sessions; create one with: tine new");
        return cli_say(EXIT_NOT_FOUND, "there is no %s: there are %zu sessions", text, seen);
    }
    snprintf(out->id, sizeof(out->id), "%s", reply->sessions[before - seen]->id);
    return EXIT_OK;
}

static int say_candidates(const char *text, Session *const *sessions, size_t count, bool more)
{
    int code = cli_say(EXIT_FAILED,
                       "'%s' may be one of these sessions; use more characters of the ID:", text);
    int64_t now_ms = cli_now_ms();
    for (size_t i = 0; i < count; i++) {
        const Session *session = sessions[i];
        const char *name = *session->slug ? session->slug : session->title;
        cli_note("    %s  %4s  %.40s%s\n", session->id,
                 format_age(session->last_active_at, now_ms).text, name,
                 session->deleted_at ? " (deleted)" : "");
    }
    if (more) cli_note("    …\n");
    return code;
}

// Chooses the only session, or the only one that is not deleted.
static int choose(const char *text, const ResolveSessionResponse *reply, bool live_first,
                  SessionName *out)
{
    const Session *chosen = NULL;
    size_t count = 0;
    for (size_t i = 0; i < reply->n_sessions; i++) {
        if (live_first && reply->n_sessions > 1 && reply->sessions[i]->deleted_at) continue;
        chosen = reply->sessions[i];
        count++;
    }
    if (count != 1) {
        return say_candidates(text, reply->sessions, reply->n_sessions,
                              reply->n_sessions == CANDIDATES_MAX);
    }
    snprintf(out->id, sizeof(out->id), "%s", chosen->id);
    return EXIT_OK;
}

// `prefix` is NULL if `text` is not the beginning of an ID.
static int find_by_slug_or_prefix(Cli *cli, const char *text, char *prefix, SessionName *out,
                                  bool *out_is_found)
{
    ResolveSessionRequest request = RESOLVE_SESSION_REQUEST__INIT;
    request.limit = CANDIDATES_MAX;
    request.by_case = TINE__V1__RESOLVE_SESSION_REQUEST__BY_SLUG;
    request.slug = (char *)(uintptr_t)text;
    for (int i = 0; i < 2; i++) {
        CLEANUP(message_freep) ResolveSessionResponse *reply = NULL;
        if (tine_resolve_session(cli->tine, &cli->call, &request, &reply)) {
            return cli_fail(cli, &cli->status);
        }
        *out_is_found = reply->n_sessions > 0;
        if (*out_is_found) return choose(text, reply, /* live_first= */ i == 0, out);
        if (!prefix) break;
        request.by_case = TINE__V1__RESOLVE_SESSION_REQUEST__BY_ID_PREFIX;
        request.id_prefix = prefix;
    }
    return EXIT_OK;
}

// Finds a session by the ID that its agent gave it.
static int find_by_external(Cli *cli, const char *text, SessionName *out, bool *out_is_found)
{
    External external = EXTERNAL__INIT;
    ResolveSessionRequest request = RESOLVE_SESSION_REQUEST__INIT;
    request.by_case = TINE__V1__RESOLVE_SESSION_REQUEST__BY_EXTERNAL;
    request.external = &external;
    external.id = (char *)(uintptr_t)text;
    for (size_t i = 0; AGENT_SOURCES[i] && !*out_is_found; i++) {
        CLEANUP(message_freep) ResolveSessionResponse *reply = NULL;
        external.source = (char *)(uintptr_t)AGENT_SOURCES[i];
        if (tine_resolve_session(cli->tine, &cli->call, &request, &reply)) {
            return cli_fail(cli, &cli->status);
        }
        *out_is_found = reply->n_sessions > 0;
        if (*out_is_found) snprintf(out->id, sizeof(out->id), "%s", reply->sessions[0]->id);
    }
    return EXIT_OK;
}

int cli_find_session(Cli *cli, const char *text, SessionName *out)
{
    size_t before;
    if (read_before(text, "@last", &before)) return find_last(cli, text, before, out);
    char prefix[ID_BYTES];
    bool is_prefix = read_prefix(text, prefix);
    if (is_prefix && strlen(prefix) == ID_BYTES - 1) {
        memcpy(out->id, prefix, ID_BYTES);
        return EXIT_OK;
    }
    if (text[0] == '@' || !*text) {
        return cli_usage(cli, "'%s' is not the name of a session; see: tine help", text);
    }
    bool is_found = false;
    int code = find_by_slug_or_prefix(cli, text, is_prefix ? prefix : NULL, out, &is_found);
    if (!code && !is_found) code = find_by_external(cli, text, out, &is_found);
    if (code || is_found) return code;
    return cli_say(EXIT_NOT_FOUND, "there is no session '%s'%s", text,
                   strlen(text) < PREFIX_BYTES_MIN ? " (an ID needs at least 4 characters)" : "");
}

// Messages are found by walking the history from its head: no call finds them by prefix.

typedef struct MessageSearch {
    const char *prefix; // NULL: search by position
    size_t before;      // positions before the head
    MessageName found[CANDIDATES_MAX];
    size_t found_count;
} MessageSearch;

static bool search_page(MessageSearch *search, Message *const *messages, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *id = messages[i]->id;
        if (search->prefix && strncmp(id, search->prefix, strlen(search->prefix)) != 0) continue;
        if (!search->prefix && search->before-- > 0) continue;
        snprintf(search->found[search->found_count++].id, ID_BYTES, "%s", id);
        if (!search->prefix || search->found_count == CANDIDATES_MAX) return true;
    }
    return false;
}

static int search_history(Cli *cli, const char *session_id, MessageSearch *search)
{
    MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
    MessageKind kinds[MESSAGE_KIND_CUSTOM];
    for (size_t i = 0; i < MESSAGE_KIND_CUSTOM; i++)
        kinds[i] = (MessageKind)(i + 1);
    request.session_id = (char *)(uintptr_t)session_id;
    request.newest_first = true;
    request.kinds = kinds;
    // A position counts conversation messages only; an ID may be that of any entry.
    request.n_kinds = search->prefix ? MESSAGE_KIND_CUSTOM : 0;
    if (!search->prefix) request.limit = (uint32_t)search->before + 1;
    CLEANUP(message_freep) MessagesForSessionResponse *reply = NULL;
    for (;;) {
        MessagesForSessionResponse *next = NULL;
        if (tine_messages_for_session(cli->tine, &cli->call, &request, &next)) {
            return cli_fail(cli, &cli->status);
        }
        message_freep(&reply);
        reply = next;
        if (search_page(search, reply->messages, reply->n_messages)) return EXIT_OK;
        request.cursor = reply->next_cursor;
        if (!*reply->next_cursor) return EXIT_OK;
    }
}

int cli_find_message(Cli *cli, const char *session_id, const char *text, MessageName *out)
{
    char prefix[ID_BYTES];
    MessageSearch search = {0};
    if (read_prefix(text, prefix)) {
        if (strlen(prefix) == ID_BYTES - 1) {
            memcpy(out->id, prefix, ID_BYTES);
            return EXIT_OK;
        }
        search.prefix = prefix;
    } else if (!read_before(text, "@head", &search.before)) {
        return cli_usage(cli,
                         "'%s' is not the name of a message; use an ID, or @head~1 for the one "
                         "before the last",
                         text);
    }
    Progress *progress = progress_begin("looking for the message", NULL, 0);
    int code = search_history(cli, session_id, &search);
    progress_end(progress);
    if (code) return code;
    if (search.found_count == 0) {
        return cli_say(EXIT_NOT_FOUND, "there is no message '%s' in the history of the session",
                       text);
    }
    if (search.found_count > 1) {
        code = cli_say(EXIT_FAILED,
                       "'%s' may be one of these messages; use more characters of the ID:", text);
        for (size_t i = 0; i < search.found_count; i++) {
            cli_note("    %s\n", search.found[i].id);
        }
        return code;
    }
    *out = search.found[0];
    return EXIT_OK;
}

int cli_read_model(const Cli *cli, char *text, ModelRef *out)
{
    *out = (ModelRef)MODEL_REF__INIT;
    char *slash = strchr(text, '/');
    if (slash) *slash = '\0';
    out->provider = slash ? text : "unknown";
    out->name = slash ? slash + 1 : text;
    if (*out->provider && *out->name) return EXIT_OK;
    return cli_usage(cli, "a model has the form PROVIDER/NAME");
}
