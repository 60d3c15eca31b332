// tine's calls. Requests and replies are built and decoded as programs do it, by tine_calls.h and
// protobuf-c; pages of many records are decoded into an arena. history_bytes takes the reply as it
// came.

#include "tine_store.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "channel_local.h"
#include "client.h"
#include "fields.h"
#include "tine_calls.h"

typedef struct Client {
    Tine *tine;
    Engine *engine;   // of one that fills; NULL
    TineArena *arena; // for what one thread reads
    TineBytes reply;
} Client;

static char *text(const char *constant)
{
    return (char *)(uintptr_t)constant; // protobuf-c's requests are not const
}

static Client *client_make(void)
{
    Client *client = calloc(1, sizeof(Client));
    require(client != NULL, "out of memory");
    client->arena = tine_arena_open();
    require(client->arena != NULL, "out of memory");
    return client;
}

static void *connect_to(const char *url, unsigned flags)
{
    Client *client = client_make();
    TineStatus status;
    TineOpenOptions options = {.wait_for_server = true, .flags = flags};
    require(tine_open_with(url, &options, &status, &client->tine) == 0, "%s", status.message);
    return client;
}

void *tine_store_connect_ipc(const Place *place, unsigned flags)
{
    char url[SOCKET_BYTES_MAX + 8];
    snprintf(url, sizeof(url), "ipc://%s", place->server.socket);
    return connect_to(url, flags);
}

void *tine_store_connect_embedded(const Place *place, const char *options)
{
    char url[PLACE_BYTES_MAX + 64];
    snprintf(url, sizeof(url), "embedded:%s%s", place->directory, options);
    return connect_to(url, 0);
}

void tine_store_disconnect(void *context)
{
    Client *client = context;
    tine_close(client->tine);
    tine_arena_close(client->arena);
    tine_bytes_free(&client->reply);
    free(client);
}

void tine_store_require_direct(void *context)
{
    TineClientStats stats;
    tine_client_stats(((Client *)context)->tine, &stats);
    for (TineFallback i = 0; i < TINE_FALLBACK_COUNT; i++) {
        require(stats.fallbacks[i] == 0, "reads were calls, %s: %s", tine_fallback_name(i),
                stats.last_why);
    }
}

void *tine_store_fill_open(const Place *place)
{
    Client *client = client_make();
    EngineOptions options = {.store = {.directory = place->directory, .is_ephemeral = true}};
    ErrorDetail detail = {{0}};
    Error error = engine_open(&options, &detail, &client->engine);
    require(!error, "cannot open %s: %s", place->directory, detail.text);
    Channel *channel;
    require(channel_local_borrow(client->engine, &channel) == 0, "out of memory");
    require(tine_from_channel(channel, &client->tine) == 0, "out of memory");
    return client;
}

void tine_store_fill_close(void *context)
{
    Client *client = context;
    Engine *engine = client->engine;
    tine_store_disconnect(client);
    engine_close(engine);
}

void tine_store_start(Place *place)
{
    tined_start(&place->server, NULL, place->directory);
}

void tine_store_stop(Place *place)
{
    peer_stop(&place->server);
}

// A typed call that must succeed.
#define CALL(name, client, request, out_response)                                                  \
    CALL_WITH(name, client, NULL, request, out_response)

// The same into an arena: what it leaves is gone when the arena is reset.
#define CALL_INTO_ARENA(name, client, request, out_response)                                       \
    CALL_WITH(name, client, tine_arena_allocator(((Client *)(client))->arena), request,            \
              out_response)

#define CALL_WITH(name, client, memory, request, out_response)                                     \
    do {                                                                                           \
        TineStatus status;                                                                         \
        TineCallOptions options = {.out_status = &status, .allocator = memory};                    \
        require(tine_##name(((Client *)(client))->tine, &options, request, out_response) == 0,     \
                #name ": %s", status.message);                                                     \
    } while (0)

static void arena_release(void *client)
{
    tine_arena_reset(((Client *)client)->arena);
}

static void release(ProtobufCMessage *message)
{
    protobuf_c_message_free_unpacked(message, NULL);
}

static void id_set(Id *out, const char *id)
{
    snprintf(out->text, sizeof(out->text), "%s", id);
}

void tine_create_session_of(void *client, const SessionSpec *spec, Id *out)
{
    ModelRef model = MODEL_REF__INIT;
    model.provider = text(MODEL_PROVIDER);
    model.name = text(MODEL_NAME);
    NewSession session = NEW_SESSION__INIT;
    session.project_dir = text(PROJECT_DIR);
    session.slug = text(spec->slug);
    session.model = &model;
    if (spec->parent) {
        session.kind = SESSION_KIND_SUBAGENT;
        session.parent_id = text(spec->parent->text);
    }
    CreateSessionRequest request = CREATE_SESSION_REQUEST__INIT;
    request.session = &session;
    CreateSessionResponse *response;
    CALL(create_session, client, &request, &response);
    id_set(out, response->session->id);
    release(&response->base);
}

void tine_fork_of(void *client, const Id *session, const Id *message, Id *out)
{
    ForkSessionRequest request = FORK_SESSION_REQUEST__INIT;
    request.session_id = text(session->text);
    request.fork_point_case = FORK_SESSION_REQUEST__FORK_POINT_THROUGH_MESSAGE_ID;
    request.through_message_id = text(message->text);
    ForkSessionResponse *response;
    CALL(fork_session, client, &request, &response);
    id_set(out, response->session->id);
    release(&response->base);
}

// The parts of an entry, in memory that lives as long as this.
typedef struct Draft {
    NewMessage message;
    Usage usage;
    Part parts[2], *part_list[2];
    Text text;
    ToolUse use;
    ToolResult result;
} Draft;

static void add_part(Draft *draft, Part__KindCase kind)
{
    size_t index = draft->message.n_parts++;
    draft->parts[index] = (Part)PART__INIT;
    draft->parts[index].kind_case = kind;
    draft->part_list[index] = &draft->parts[index];
}

static void draft_assistant(Draft *draft)
{
    add_part(draft, PART__KIND_TOOL_USE);
    draft->use = (ToolUse)TOOL_USE__INIT;
    draft->use.id = text(TOOL_USE_ID);
    draft->use.name = text(TOOL_NAME);
    draft->use.input_case = TOOL_USE__INPUT_INPUT_JSON;
    draft->use.input_json = text(TOOL_INPUT);
    draft->parts[1].tool_use = &draft->use;
    draft->usage = (Usage)USAGE__INIT;
    draft->usage.input_tokens = USAGE_INPUT;
    draft->usage.output_tokens = USAGE_OUTPUT;
    draft->usage.cache_read_tokens = USAGE_CACHE_READ;
    draft->usage.cache_write_tokens = USAGE_CACHE_WRITE;
    draft->usage.cost_nano_usd = USAGE_COST_NANO_USD;
    draft->message.usage = &draft->usage;
}

static void draft_make(Draft *draft, const Entry *entry)
{
    static const Role roles[] = {ROLE_USER, ROLE_ASSISTANT, ROLE_TOOL};
    draft->message = (NewMessage)NEW_MESSAGE__INIT;
    draft->message.role = roles[entry->kind];
    draft->message.parts = draft->part_list;
    if (entry->kind == ENTRY_TOOL) {
        add_part(draft, PART__KIND_TOOL_RESULT);
        draft->result = (ToolResult)TOOL_RESULT__INIT;
        draft->result.tool_use_id = text(TOOL_USE_ID);
        draft->result.content = text(entry->text);
        draft->parts[0].tool_result = &draft->result;
        return;
    }
    add_part(draft, PART__KIND_TEXT);
    draft->text = (Text)TEXT__INIT;
    draft->text.text = text(entry->text);
    draft->parts[0].text = &draft->text;
    if (entry->kind == ENTRY_ASSISTANT) draft_assistant(draft);
}

void tine_append_of(void *client, const Id *session, const Entry *entry, Id *out)
{
    Draft draft;
    draft_make(&draft, entry);
    AppendMessageRequest request = APPEND_MESSAGE_REQUEST__INIT;
    request.session_id = text(session->text);
    request.message = &draft.message;
    AppendMessageResponse *response;
    CALL(append_message, client, &request, &response);
    if (out) id_set(out, response->receipt->id);
    release(&response->base);
}

void tine_propagate_of(void *client, const Id *session)
{
    Totals delta = TOTALS__INIT;
    delta.input_tokens = USAGE_INPUT;
    delta.output_tokens = USAGE_OUTPUT;
    delta.cache_read_tokens = USAGE_CACHE_READ;
    delta.cache_write_tokens = USAGE_CACHE_WRITE;
    delta.cost_nano_usd = USAGE_COST_NANO_USD;
    PropagateTotalsRequest request = PROPAGATE_TOTALS_REQUEST__INIT;
    request.session_id = text(session->text);
    request.delta = &delta;
    PropagateTotalsResponse *response;
    CALL(propagate_totals, client, &request, &response);
    release(&response->base);
}

void tine_get_session_of(void *client, const Id *session)
{
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    request.session_id = text(session->text);
    GetSessionResponse *response;
    CALL(get_session, client, &request, &response);
    release(&response->base);
}

void tine_get_message_of(void *client, const Id *message)
{
    GetMessageRequest request = GET_MESSAGE_REQUEST__INIT;
    request.by_case = GET_MESSAGE_REQUEST__BY_MESSAGE_ID;
    request.message_id = text(message->text);
    GetMessageResponse *response;
    CALL(get_message, client, &request, &response);
    release(&response->base);
}

void tine_list_memories_of(void *client, const Id *session)
{
    ListSessionMemoriesRequest request = LIST_SESSION_MEMORIES_REQUEST__INIT;
    request.session_id = text(session->text);
    ListSessionMemoriesResponse *response;
    CALL(list_session_memories, client, &request, &response);
    release(&response->base);
}

void tine_mark_of(void *client, const Id *session, const Id *before)
{
    Marker marker = MARKER__INIT;
    marker.before_message_id = text(before->text);
    marker.summary = text("what was done so far");
    AddCompactionMarkerRequest request = ADD_COMPACTION_MARKER_REQUEST__INIT;
    request.session_id = text(session->text);
    request.marker = &marker;
    AddCompactionMarkerResponse *response;
    CALL(add_compaction_marker, client, &request, &response);
    release(&response->base);
}

// Counts the messages at the front of a page and returns what follows them.
static Slice skip_messages(Slice page, Tally *tally)
{
    enum { TAG = FIELD_MESSAGES_FOR_SESSION_RESPONSE_MESSAGES << 3 | WIRE_BYTES };
    const uint8_t *at = page.bytes, *end = page.bytes + page.size;
    while (at < end && *at == TAG) {
        size_t size = 0;
        unsigned shift = 0;
        do {
            if (++at == end || shift > 28) require(false, "a page that ends in a length");
            size |= (size_t)(*at & 0x7f) << shift;
            shift += 7;
        } while (*at & 0x80);
        if (size >= (size_t)(end - at)) require(false, "a page that ends in a message");
        at += size + 1;
        tally->messages++;
    }
    return slice(at, (size_t)(end - at));
}

// One page of a history, as bytes. Returns its cursor, empty at the end.
static Slice page_bytes(Client *client, const MessagesForSessionRequest *page, Tally *tally)
{
    TineStatus status;
    TineCallOptions options = {.out_status = &status};
    require(tine_call_bytes(client->tine, &options, METHODS[METHOD_MESSAGES_FOR_SESSION].path,
                            &page->base, &client->reply) == 0,
            "a history: %s", status.message);
    Slice rest = skip_messages(slice(client->reply.bytes, client->reply.size), tally);
    Slice cursor = {NULL, 0};
    WireField field;
    while (wire_next(&rest, &field)) {
        if (field.number == FIELD_MESSAGES_FOR_SESSION_RESPONSE_NEXT_CURSOR) cursor = field.bytes;
    }
    return cursor;
}

void tine_history_bytes_of(void *client, const Id *session, Tally *out)
{
    char text_of_cursor[CURSOR_BYTES_MAX + 1] = "";
    *out = (Tally){0, 0};
    do {
        MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
        request.session_id = text(session->text);
        request.page_bytes = PAGE_BYTES_MAX;
        request.cursor = text_of_cursor;
        Slice cursor = page_bytes(client, &request, out);
        snprintf(text_of_cursor, sizeof(text_of_cursor), "%.*s", (int)cursor.size,
                 cursor.size ? (const char *)cursor.bytes : "");
    } while (*text_of_cursor);
}

static bool count_lent(void *context, const TineLent *message)
{
    Tally *tally = context;
    tally->messages += message->size > 0;
    return true;
}

void tine_history_lent_of(void *client, const Id *session, Tally *out)
{
    char cursor[TINE_CURSOR_BYTES] = "";
    *out = (Tally){0, 0};
    do {
        MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
        request.session_id = text(session->text);
        request.page_bytes = PAGE_BYTES_MAX;
        request.cursor = cursor;
        TineStatus status;
        TineCallOptions options = {.out_status = &status};
        require(tine_read_messages(((Client *)client)->tine, &options, &request, count_lent, out,
                                   cursor) == 0,
                "a history: %s", status.message);
    } while (*cursor);
}

static void tally_add(Tally *tally, Message *const *messages, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < messages[i]->n_parts; j++) {
            const Part *part = messages[i]->parts[j];
            if (part->kind_case == PART__KIND_TEXT) tally->text_bytes += strlen(part->text->text);
            if (part->kind_case == PART__KIND_TOOL_RESULT)
                tally->text_bytes += strlen(part->tool_result->content);
        }
    }
    tally->messages += count;
}

void tine_history_of(void *client, const Id *session, Tally *out)
{
    char cursor[CURSOR_BYTES_MAX + 1] = "";
    *out = (Tally){0, 0};
    do {
        MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
        request.session_id = text(session->text);
        request.page_bytes = PAGE_BYTES_MAX;
        request.cursor = cursor;
        MessagesForSessionResponse *response;
        CALL_INTO_ARENA(messages_for_session, client, &request, &response);
        tally_add(out, response->messages, response->n_messages);
        snprintf(cursor, sizeof(cursor), "%s", response->next_cursor);
        arena_release(client);
    } while (*cursor);
}

void tine_window_of(void *client, const Id *session, Tally *out)
{
    char cursor[CURSOR_BYTES_MAX + 1] = "";
    *out = (Tally){0, 0};
    do {
        MessagesSinceLatestMarkerRequest request = MESSAGES_SINCE_LATEST_MARKER_REQUEST__INIT;
        request.session_id = text(session->text);
        request.page_bytes = PAGE_BYTES_MAX;
        request.cursor = cursor;
        MessagesSinceLatestMarkerResponse *response;
        CALL_INTO_ARENA(messages_since_latest_marker, client, &request, &response);
        tally_add(out, response->messages, response->n_messages);
        snprintf(cursor, sizeof(cursor), "%s", response->next_cursor);
        arena_release(client);
    } while (*cursor);
}

size_t tine_list_of(void *client, size_t limit, const char *query)
{
    char cursor[CURSOR_BYTES_MAX + 1] = "";
    size_t count = 0;
    do {
        ListSessionsRequest request = LIST_SESSIONS_REQUEST__INIT;
        request.limit = (uint32_t)(limit - count);
        request.cursor = cursor;
        if (query) request.query = text(query);
        ListSessionsResponse *response;
        CALL_INTO_ARENA(list_sessions, client, &request, &response);
        count += response->n_sessions;
        snprintf(cursor, sizeof(cursor), "%s", response->next_cursor);
        arena_release(client);
    } while (count < limit && *cursor);
    return count;
}
