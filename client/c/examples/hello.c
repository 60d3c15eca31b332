// The smallest program: stores one message. cc hello.c $(pkg-config --cflags --libs libtine) &&
// ./a.out embedded:DIR
#include <stdio.h>
#include <tine_calls.h>

static TineStatus status;
static const TineCallOptions options = {.timeout_ms = 5000, .out_status = &status};

static int hello(Tine *tine)
{
    Tine__V1__ModelRef model = TINE__V1__MODEL_REF__INIT;
    model.provider = "anthropic", model.name = "claude";
    Tine__V1__NewSession session = TINE__V1__NEW_SESSION__INIT;
    session.project_dir = "/home/you/project", session.model = &model;
    Tine__V1__CreateSessionRequest create = TINE__V1__CREATE_SESSION_REQUEST__INIT;
    create.session = &session;
    Tine__V1__CreateSessionResponse *created;
    if (tine_create_session(tine, &options, &create, &created)) return status.code;
    Tine__V1__Text text = TINE__V1__TEXT__INIT;
    Tine__V1__Part part = TINE__V1__PART__INIT, *parts[] = {&part};
    text.text = "Hello.", part.kind_case = TINE__V1__PART__KIND_TEXT, part.text = &text;
    Tine__V1__NewMessage message = TINE__V1__NEW_MESSAGE__INIT;
    message.role = TINE__V1__ROLE__ROLE_USER, message.parts = parts, message.n_parts = 1;
    Tine__V1__AppendMessageRequest append = TINE__V1__APPEND_MESSAGE_REQUEST__INIT;
    append.session_id = created->session->id, append.message = &message;
    Tine__V1__AppendMessageResponse *appended;
    int code = tine_append_message(tine, &options, &append, &appended);
    if (!code) printf("message %s in session %s\n", appended->receipt->id, append.session_id);
    if (!code) tine__v1__append_message_response__free_unpacked(appended, NULL);
    tine__v1__create_session_response__free_unpacked(created, NULL);
    return code;
}

int main(int argument_count, char **arguments)
{
    Tine *tine;
    int code = tine_open(argument_count > 1 ? arguments[1] : "embedded::memory:", &status, &tine);
    if (!code) code = hello(tine), tine_close(tine);
    if (code) fprintf(stderr, "%s: %s\n", status.reason, status.message);
    return code;
}
