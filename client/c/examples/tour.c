// The tour: what tine is for, end to end. It runs on a store of its own in a temporary directory,
// or on the server whose URL is its argument.
//
// Every line that it prints is a real call through libtine, with the time that the call took. Lines
// that begin with an arrow come from a second client, which watches and prints each event as it
// arrives.

#include <dirent.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tine.h"
#include "tine/v1/store.pb-c.h"
#include "tine_calls.h"

static Tine *tine;
static TineStatus status;
static const TineCallOptions options = {.out_status = &status};
static double last_us;

typedef struct Id {
    char text[32];
} Id;

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...)
{
    va_list arguments;
    char line[256];
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    printf("  %-84s %7.0f us\n", line, last_us);
    fflush(stdout);
}

// Ends the program if a call failed.
static void must(int code)
{
    if (code == 0) return;
    fprintf(stderr, "tine-tour: %s: %s\n", status.reason, status.message);
    exit(1);
}

// Makes one call, times it, and stops the program if it fails. The reply is the macro's value.
#define CALL(name, Name, ...)                                                                      \
    ({                                                                                             \
        Tine__V1__##Name##Response *call_reply = NULL;                                             \
        double begun_us = now_us();                                                                \
        must(tine_##name(tine, &options, (__VA_ARGS__), &call_reply));                             \
        last_us = now_us() - begun_us;                                                             \
        call_reply;                                                                                \
    })
#define FREE(reply) protobuf_c_message_free_unpacked(&(reply)->base, NULL)

static Id id_of(const char *text)
{
    Id id;
    snprintf(id.text, sizeof(id.text), "%s", text);
    return id;
}

static Id create(const char *slug)
{
    Tine__V1__ModelRef model = TINE__V1__MODEL_REF__INIT;
    model.provider = "anthropic";
    model.name = "claude";
    Tine__V1__NewSession session = TINE__V1__NEW_SESSION__INIT;
    session.project_dir = "/home/you/project";
    session.slug = (char *)slug;
    session.model = &model;
    Tine__V1__CreateSessionRequest request = TINE__V1__CREATE_SESSION_REQUEST__INIT;
    request.session = &session;
    Tine__V1__CreateSessionResponse *reply = CALL(create_session, CreateSession, &request);
    Id id = id_of(reply->session->id);
    say("session %s  %s", id.text, slug);
    FREE(reply);
    return id;
}

static Id append(const Id *session, Tine__V1__Role role, const char *content)
{
    Tine__V1__Text text = TINE__V1__TEXT__INIT;
    text.text = (char *)content;
    Tine__V1__Part part = TINE__V1__PART__INIT;
    part.kind_case = TINE__V1__PART__KIND_TEXT;
    part.text = &text;
    Tine__V1__Part *parts[] = {&part};
    Tine__V1__NewMessage message = TINE__V1__NEW_MESSAGE__INIT;
    message.role = role;
    message.parts = parts;
    message.n_parts = 1;
    Tine__V1__AppendMessageRequest request = TINE__V1__APPEND_MESSAGE_REQUEST__INIT;
    request.session_id = (char *)session->text;
    request.message = &message;
    Tine__V1__AppendMessageResponse *reply = CALL(append_message, AppendMessage, &request);
    Id id = id_of(reply->receipt->id);
    say("append  #%llu %s", (unsigned long long)reply->receipt->sequence, content);
    FREE(reply);
    return id;
}

static Id fork_through(const Id *session, const Id *message)
{
    Tine__V1__ForkSessionRequest request = TINE__V1__FORK_SESSION_REQUEST__INIT;
    request.session_id = (char *)session->text;
    request.fork_point_case = TINE__V1__FORK_SESSION_REQUEST__FORK_POINT_THROUGH_MESSAGE_ID;
    request.through_message_id = (char *)message->text;
    request.slug = "the-other-way";
    Tine__V1__ForkSessionResponse *reply = CALL(fork_session, ForkSession, &request);
    Id id = id_of(reply->session->id);
    say("fork    %s  the-other-way (nothing was copied)", id.text);
    FREE(reply);
    return id;
}

static void show_history(const char *title, const Id *session)
{
    Tine__V1__MessagesForSessionRequest request = TINE__V1__MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = (char *)session->text;
    Tine__V1__MessagesForSessionResponse *reply =
        CALL(messages_for_session, MessagesForSession, &request);
    say("history of %s: %zu messages", title, reply->n_messages);
    for (size_t i = 0; i < reply->n_messages; i++) {
        const Tine__V1__Message *message = reply->messages[i];
        printf("      %s %-9s %s\n", message->id,
               message->role == TINE__V1__ROLE__ROLE_USER ? "user" : "assistant",
               message->n_parts ? message->parts[0]->text->text : "");
    }
    FREE(reply);
}

static void rewind_to(const Id *session, const Id *message)
{
    Tine__V1__RewindSessionRequest request = TINE__V1__REWIND_SESSION_REQUEST__INIT;
    request.session_id = (char *)session->text;
    request.message_id = (char *)message->text;
    Tine__V1__RewindSessionResponse *reply = CALL(rewind_session, RewindSession, &request);
    say("rewind  to %s (the log keeps what came after)", reply->session->head_id);
    FREE(reply);
}

static void compact(const Id *session, const Id *before)
{
    Tine__V1__Marker marker = TINE__V1__MARKER__INIT;
    marker.before_message_id = (char *)before->text;
    marker.summary = "We agreed on LMDB.";
    Tine__V1__AddCompactionMarkerRequest request = TINE__V1__ADD_COMPACTION_MARKER_REQUEST__INIT;
    request.session_id = (char *)session->text;
    request.marker = &marker;
    Tine__V1__AddCompactionMarkerResponse *reply =
        CALL(add_compaction_marker, AddCompactionMarker, &request);
    say("compact before the second message: \"%s\"", reply->entry->marker->summary);
    FREE(reply);

    Tine__V1__BuildContextRequest wanted = TINE__V1__BUILD_CONTEXT_REQUEST__INIT;
    wanted.session_id = (char *)session->text;
    Tine__V1__BuildContextResponse *context = CALL(build_context, BuildContext, &wanted);
    say("context to resume with: a summary and %zu live messages", context->n_messages);
    FREE(context);
}

// Prints events until it has seen `last_event`, the last write of the tour.
static const char *const last_event = "marker.added";

static void *watch_main(void *argument)
{
    TineWatch *watch = argument;
    TineStatus watch_status;
    bool is_last = false;
    while (!is_last) {
        Tine__V1__Event *event = NULL;
        if (tine_watch_next(watch, -1, &watch_status, &event) != 0) {
            fprintf(stderr, "tine-tour: watching: %s\n", watch_status.message);
            return NULL;
        }
        if (!event) continue;
        printf("      -> event %llu %s of %s\n", (unsigned long long)event->sequence, event->type,
               event->session_id);
        is_last = strcmp(event->type, last_event) == 0;
        tine__v1__event__free_unpacked(event, NULL);
    }
    return NULL;
}

static void remove_directory(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir) return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] != '.') (void)unlinkat(dirfd(dir), entry->d_name, 0);
    }
    closedir(dir);
    rmdir(path);
}

int main(int argument_count, char **arguments)
{
    const char *server = argument_count > 1 ? arguments[1] : NULL;
    char directory[] = "/tmp/tine-tour-XXXXXX", url[64];
    if (!server && !mkdtemp(directory)) {
        perror("tine-tour: no temporary directory");
        return 1;
    }
    snprintf(url, sizeof(url), "embedded:%s", directory);
    TineOpenOptions open_options = {.wait_for_server = true};
    must(tine_open_with(server ? server : url, &open_options, &status, &tine));
    printf("A store in %s; every write below is on the disk when its line appears.\n\n",
           server ? server : directory);
    TineWatch *watch;
    pthread_t watcher;
    must(tine_watch(tine, NULL, &status, &watch));
    if (pthread_create(&watcher, NULL, watch_main, watch) != 0) return 1;

    Id session = create("storage");
    Id first = append(&session, TINE__V1__ROLE__ROLE_USER, "Which store should we use?");
    Id second = append(&session, TINE__V1__ROLE__ROLE_ASSISTANT, "LMDB: reads cost a memcpy.");
    append(&session, TINE__V1__ROLE__ROLE_USER, "And who writes?");
    Id fork = fork_through(&session, &second);
    append(&fork, TINE__V1__ROLE__ROLE_USER, "What about SQLite instead?");
    show_history("the fork", &fork);
    rewind_to(&session, &second);
    append(&session, TINE__V1__ROLE__ROLE_USER, "Then LMDB it is.");
    show_history("the session", &session);
    compact(&session, &first);

    pthread_join(watcher, NULL);
    tine_watch_close(watch);
    tine_close(tine);
    if (!server) remove_directory(directory);
    printf("\n%sclient/c/examples/tour.c is this program;\n"
           "proto/tine/v1/store.proto is the manual of every call.\n",
           server ? "" : "The store is removed again. ");
    return 0;
}
