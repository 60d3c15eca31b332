// The store that is damaged.

#include "store_make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "os/random.h"
#include "tine.h"
#include "tine_calls.h"

enum { SESSIONS = 24, MESSAGES = 106, PURGED = 3, TEXT_BYTES_MAX = 24 * 1024, ID_BYTES = 32 };

typedef struct Maker {
    Tine *tine;
    Random random;
    char session[ID_BYTES], message[ID_BYTES]; // the newest
    char text[TEXT_BYTES_MAX + 1];
} Maker;

static char *text_make(Maker *maker, size_t size)
{
    for (size_t i = 0; i < size; i++)
        maker->text[i] = (char)(' ' + random_below(&maker->random, 95));
    maker->text[size] = '\0';
    return maker->text;
}

static void session_make(Maker *maker, unsigned number)
{
    char slug[32], title[64];
    Tine__V1__ModelRef model = TINE__V1__MODEL_REF__INIT;
    Tine__V1__NewSession session = TINE__V1__NEW_SESSION__INIT;
    Tine__V1__CreateSessionRequest request = TINE__V1__CREATE_SESSION_REQUEST__INIT;
    Tine__V1__CreateSessionResponse *response;
    model.provider = "provider", model.name = "model";
    snprintf(slug, sizeof(slug), "session-%u", number);
    snprintf(title, sizeof(title), "Session number %u", number);
    session.slug = slug, session.title = title, session.model = &model;
    session.project_dir = number % 2 ? "/home/one" : "/home/two";
    session.system_prompt = text_make(maker, 3000);
    request.session = &session;
    CHECK_EQ(tine_create_session(maker->tine, NULL, &request, &response), 0);
    snprintf(maker->session, ID_BYTES, "%s", response->session->id);
    tine__v1__create_session_response__free_unpacked(response, NULL);
}

// Most are short; some need a chunk of their own, and some many.
static size_t text_bytes(Maker *maker)
{
    uint64_t kind = random_below(&maker->random, 20);
    size_t most = kind == 0 ? TEXT_BYTES_MAX : kind < 9 ? 9000 : 1500;
    return 1 + (size_t)random_below(&maker->random, most);
}

static void message_append(Maker *maker, unsigned number)
{
    char external[64];
    Tine__V1__Text text = TINE__V1__TEXT__INIT;
    Tine__V1__Part part = TINE__V1__PART__INIT, *parts[] = {&part};
    Tine__V1__External source = TINE__V1__EXTERNAL__INIT;
    Tine__V1__NewMessage message = TINE__V1__NEW_MESSAGE__INIT;
    Tine__V1__AppendMessageRequest request = TINE__V1__APPEND_MESSAGE_REQUEST__INIT;
    Tine__V1__AppendMessageResponse *response;
    text.text = text_make(maker, text_bytes(maker));
    part.kind_case = TINE__V1__PART__KIND_TEXT, part.text = &text;
    message.role = number % 2 ? TINE__V1__ROLE__ROLE_ASSISTANT : TINE__V1__ROLE__ROLE_USER;
    message.parts = parts, message.n_parts = 1;
    snprintf(external, sizeof(external), "message-%u", number);
    source.source = "damage", source.id = external;
    if (number % 3 == 0) message.external = &source;
    request.session_id = maker->session, request.message = &message;
    CHECK_EQ(tine_append_message(maker->tine, NULL, &request, &response), 0);
    snprintf(maker->message, ID_BYTES, "%s", response->receipt->id);
    tine__v1__append_message_response__free_unpacked(response, NULL);
}

static void memory_make(Maker *maker)
{
    Tine__V1__NewMemory memory = TINE__V1__NEW_MEMORY__INIT;
    Tine__V1__RememberSessionMemoryRequest request =
        TINE__V1__REMEMBER_SESSION_MEMORY_REQUEST__INIT;
    Tine__V1__RememberSessionMemoryResponse *response;
    memory.title = "a memory", memory.content = text_make(maker, 700);
    request.session_id = maker->session, request.memory = &memory;
    CHECK_EQ(tine_remember_session_memory(maker->tine, NULL, &request, &response), 0);
    tine__v1__remember_session_memory_response__free_unpacked(response, NULL);
}

static void todos_make(Maker *maker)
{
    Tine__V1__TodoItem item = TINE__V1__TODO_ITEM__INIT, *items[] = {&item, &item};
    Tine__V1__ReplaceSessionTodosRequest request = TINE__V1__REPLACE_SESSION_TODOS_REQUEST__INIT;
    Tine__V1__ReplaceSessionTodosResponse *response;
    item.status = "pending", item.content = text_make(maker, 200);
    request.session_id = maker->session, request.items = items, request.n_items = 2;
    CHECK_EQ(tine_replace_session_todos(maker->tine, NULL, &request, &response), 0);
    tine__v1__replace_session_todos_response__free_unpacked(response, NULL);
}

static void call_make(Maker *maker)
{
    Tine__V1__ModelRef model = TINE__V1__MODEL_REF__INIT;
    Tine__V1__NewCall call = TINE__V1__NEW_CALL__INIT;
    Tine__V1__RecordCallRequest request = TINE__V1__RECORD_CALL_REQUEST__INIT;
    Tine__V1__RecordCallResponse *response;
    model.provider = "provider", model.name = "model";
    call.resolved = &model, call.request_id = text_make(maker, 40);
    request.session_id = maker->session, request.call = &call;
    CHECK_EQ(tine_record_call(maker->tine, NULL, &request, &response), 0);
    tine__v1__record_call_response__free_unpacked(response, NULL);
}

static void marker_make(Maker *maker)
{
    Tine__V1__Marker marker = TINE__V1__MARKER__INIT;
    Tine__V1__AddCompactionMarkerRequest request = TINE__V1__ADD_COMPACTION_MARKER_REQUEST__INIT;
    Tine__V1__AddCompactionMarkerResponse *response;
    marker.before_message_id = maker->message, marker.summary = text_make(maker, 500);
    request.session_id = maker->session, request.marker = &marker;
    CHECK_EQ(tine_add_compaction_marker(maker->tine, NULL, &request, &response), 0);
    tine__v1__add_compaction_marker_response__free_unpacked(response, NULL);
}

// Goes on in a fork of the newest session.
static void fork_make(Maker *maker)
{
    Tine__V1__ForkSessionRequest request = TINE__V1__FORK_SESSION_REQUEST__INIT;
    Tine__V1__ForkSessionResponse *response;
    request.session_id = maker->session;
    request.fork_point_case = TINE__V1__FORK_SESSION_REQUEST__FORK_POINT_THROUGH_MESSAGE_ID;
    request.through_message_id = maker->message;
    CHECK_EQ(tine_fork_session(maker->tine, NULL, &request, &response), 0);
    snprintf(maker->session, ID_BYTES, "%s", response->session->id);
    tine__v1__fork_session_response__free_unpacked(response, NULL);
}

static void session_purge(Maker *maker)
{
    Tine__V1__PurgeSessionRequest request = TINE__V1__PURGE_SESSION_REQUEST__INIT;
    Tine__V1__PurgeSessionResponse *response;
    request.session_id = maker->session;
    CHECK_EQ(tine_purge_session(maker->tine, NULL, &request, &response), 0);
    tine__v1__purge_session_response__free_unpacked(response, NULL);
}

static void session_fill(Maker *maker, unsigned number)
{
    session_make(maker, number);
    for (unsigned i = 0; i < MESSAGES; i++) {
        message_append(maker, i);
        if (i % 20 == 5) memory_make(maker);
        if (i % 20 == 9) call_make(maker);
        if (i == 30) marker_make(maker);
        if (i == 40 && number % 4 == 0) fork_make(maker);
    }
    todos_make(maker);
}

static void maker_open(Maker *maker, const char *directory)
{
    char url[600];
    snprintf(url, sizeof(url), "embedded:%s", directory);
    CHECK_EQ(tine_open(url, NULL, &maker->tine), 0);
}

// Fills a store. Pages are not used again until data.mdb is flushed, so the file is compacted then,
// and its free pages come from the sessions that are purged after that.
void store_make(const char *directory, uint64_t seed)
{
    static Maker maker;
    char purged[PURGED][ID_BYTES], compact[600];
    size_t count = 0;
    random_seed(&maker.random, seed);
    maker_open(&maker, directory);
    for (unsigned i = 0; i < SESSIONS; i++) {
        session_fill(&maker, i);
        if (i % (SESSIONS / PURGED) != 1) continue;
        snprintf(purged[count++], ID_BYTES, "%s", maker.session);
    }
    tine_close(maker.tine);
    snprintf(compact, sizeof(compact), "'%s' compact-db --data '%s' >/dev/null", TINE, directory);
    CHECK_EQ(system(compact), 0);
    maker_open(&maker, directory);
    for (size_t i = 0; i < count; i++) {
        snprintf(maker.session, sizeof(maker.session), "%s", purged[i]);
        session_purge(&maker);
    }
    tine_close(maker.tine);
}
