// What the store must hold.

#include "crash_model.h"

#include <stdio.h>

static int session_index(const Model *model, const char *id)
{
    for (size_t i = model->session_count; i-- > 0;) {
        if (strcmp(model->sessions[i].id, id) == 0) return (int)i;
    }
    CHECK_STR("a record names a session that the model does not know", NULL);
    return NO_SESSION;
}

int model_add_session(Model *model, const char *id, int parent)
{
    CHECK(model->session_count < MODEL_SESSIONS_MAX);
    ModelSession *session = &model->sessions[model->session_count];
    *session = (ModelSession){.parent = parent};
    snprintf(session->id, sizeof(IdText), "%s", id);
    return (int)model->session_count++;
}

// A purged ancestor ends the chain.
static void propagate(Model *model, int session, int64_t cost)
{
    while (session != NO_SESSION && !model->sessions[session].is_purged) {
        model->sessions[session].total_cost += cost;
        session = model->sessions[session].parent;
    }
}

static void apply_append(Model *model, const CrashRecord *record)
{
    int index = session_index(model, record->session);
    ModelSession *session = &model->sessions[index];
    CHECK(model->message_count < MODEL_MESSAGES_MAX);
    ModelMessage *message = &model->messages[model->message_count++];
    *message =
        (ModelMessage){.session = index, .sequence = session->sequence, .number = record->number};
    memcpy(message->id, record->result, sizeof(IdText));
    memcpy(session->last_entry, record->result, sizeof(IdText));
    session->sequence++;
    session->entry_count++;
    session->own_cost += record->number;
    if (crash_propagates(record->number)) propagate(model, index, record->number);
}

static void apply_delete(Model *model, const CrashRecord *record)
{
    for (size_t i = model->message_count; i-- > 0;) {
        ModelMessage *message = &model->messages[i];
        if (strcmp(message->id, record->target) != 0) continue;
        message->is_deleted = true;
        model->sessions[message->session].entry_count--;
        model->sessions[message->session].own_cost -= message->number;
        return;
    }
    CHECK_STR("a record names a message that the model does not know", NULL);
}

void model_apply(Model *model, const CrashRecord *record)
{
    switch (record->op) {
    case CRASH_APPEND:
    case CRASH_APPEND_LARGE: apply_append(model, record); break;
    case CRASH_CREATE:
    case CRASH_FORK:
        model_add_session(model, record->result, session_index(model, record->session));
        break;
    case CRASH_PROPAGATE:
        propagate(model, session_index(model, record->session), record->number);
        break;
    case CRASH_REMEMBER: break;
    case CRASH_DELETE: apply_delete(model, record); break;
    case CRASH_PURGE:
        model->sessions[session_index(model, record->session)].is_purged = true;
        break;
    }
}

static void compare_session(const ModelSession *session, Engine *engine)
{
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)session->id;
    GetSessionResponse *response;
    Error error = engine_call(engine, METHOD_GET_SESSION, &request, NULL, &response);
    CHECK_EQ(error, session->is_purged ? ERROR_SESSION_NOT_FOUND : ERROR_NONE);
    if (error) return;
    const Session *stored = response->session;
    CHECK_EQ(stored->entry_count, session->entry_count);
    CHECK_EQ(stored->next_sequence, session->sequence);
    CHECK_STR(stored->last_entry_id, session->last_entry);
    CHECK_EQ(stored->own_totals->cost_nano_usd, session->own_cost);
    CHECK_EQ(stored->totals->cost_nano_usd, session->total_cost);
    engine_free(response);
}

static void compare_message(const Model *model, const ModelMessage *message, Engine *engine)
{
    GetMessageRequest request = GET_MESSAGE_REQUEST__INIT;
    request.by_case = GET_MESSAGE_REQUEST__BY_MESSAGE_ID;
    request.message_id = (char *)(uintptr_t)message->id;
    GetMessageResponse *response;
    Error error = engine_call(engine, METHOD_GET_MESSAGE, &request, NULL, &response);
    // A tombstone's messages can be read as long as forks read them.
    if (model->sessions[message->session].is_purged && error == ERROR_MESSAGE_NOT_FOUND) return;
    CHECK_EQ(error, ERROR_NONE);
    const Message *stored = response->message;
    char expected[32], text[32] = {0};
    snprintf(expected, sizeof(expected), "m%u", message->number);
    CHECK_EQ(stored->n_parts, 1);
    snprintf(text, sizeof(text), "%.31s", stored->parts[0]->text->text);
    text[strcspn(text, " ")] = '\0';
    CHECK_STR(text, expected);
    CHECK_EQ(stored->sequence, message->sequence);
    CHECK_STR(stored->session_id, model->sessions[message->session].id);
    CHECK_EQ(stored->deleted_at != 0, message->is_deleted);
    engine_free(response);
}

void model_compare(Model *model, Engine *engine, bool all)
{
    for (size_t i = 0; i < model->session_count; i++)
        compare_session(&model->sessions[i], engine);
    for (size_t i = all ? 0 : model->checked_count; i < model->message_count; i++) {
        compare_message(model, &model->messages[i], engine);
    }
    model->checked_count = model->message_count;
}
