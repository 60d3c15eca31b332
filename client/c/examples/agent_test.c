// A test of code that uses tine, on a tined of its own:
//
//     cc agent_test.c $(pkg-config --cflags --libs libtine) && ./a.out
#include <stdio.h>
#include <tine_calls.h>
#include <tine_test.h>

static TineStatus status;
static const TineCallOptions options = {.timeout_ms = 5000, .out_status = &status};

// The code under test: opens a session of a project.
static int open_session(Tine *tine, const char *project)
{
    Tine__V1__ModelRef model = TINE__V1__MODEL_REF__INIT;
    model.provider = "anthropic", model.name = "claude";
    Tine__V1__NewSession session = TINE__V1__NEW_SESSION__INIT;
    session.project_dir = (char *)project, session.model = &model;
    Tine__V1__CreateSessionRequest request = TINE__V1__CREATE_SESSION_REQUEST__INIT;
    request.session = &session;
    Tine__V1__CreateSessionResponse *response;
    int code = tine_create_session(tine, &options, &request, &response);
    if (!code) tine__v1__create_session_response__free_unpacked(response, NULL);
    return code;
}

// Counts all sessions of a project, page by page.
static int count_sessions(Tine *tine, const char *project, size_t *out_count)
{
    Tine__V1__ListSessionsRequest request = TINE__V1__LIST_SESSIONS_REQUEST__INIT;
    request.project_dir = (char *)project;
    TinePages pages = {0};
    Tine__V1__ListSessionsResponse *page;
    *out_count = 0;
    while ((page = tine_list_sessions_next(tine, &options, &request, &pages)))
        *out_count += page->n_sessions;
    tine_pages_end(&pages);
    return pages.code;
}

static int run(Tine *tine)
{
    size_t count = 0;
    int code = open_session(tine, "/a");
    if (!code) code = open_session(tine, "/a");
    if (!code) code = open_session(tine, "/b");
    if (!code) code = count_sessions(tine, "/a", &count);
    if (!code) printf("%s: /a has %zu sessions\n", count == 2 ? "ok" : "FAILED", count);
    return code ? code : count != 2;
}

int main(void)
{
    TineTest *daemon;
    Tine *tine;
    int code = tine_test_start(NULL, &status, &daemon);
    if (!code) {
        code = tine_open(tine_test_url(daemon), &status, &tine);
        if (!code) code = run(tine), tine_close(tine);
        int ended = tine_test_end(daemon, code ? NULL : &status);
        if (!code) code = ended;
    }
    char text[600];
    if (code) fprintf(stderr, "%s\n", tine_status_text(&status, text, sizeof(text)));
    return code;
}
