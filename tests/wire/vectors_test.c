// The vectors: the committed file is what the tables say, and libtine does what they say.

#include "vectors.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "harness.h"
#include "notation.h"
#include "os/clock.h"
#include "sp_dial.h"
#include "sp_frame.h"
#include "status.h"
#include "tine/v1/records.pb-c.h"
#include "wire/bus_message.h"
#include "wire/envelope.h"

static Slice bytes_of(const char *notation, Buffer *buffer)
{
    buffer_free(buffer);
    *buffer = (Buffer){.bytes = NULL};
    notation_read(buffer, notation);
    return buffer_slice(buffer);
}

static char *file_read_whole(const char *path)
{
    FILE *file = fopen(path, "re");
    CHECK(file != NULL);
    char *text = NULL;
    size_t room = 0;
    CHECK(getdelim(&text, &room, '\0', file) > 0);
    fclose(file);
    return text;
}

TEST(the_committed_vectors_are_those_of_the_tables)
{
    char *printed = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&printed, &size);
    CHECK(out != NULL);
    vectors_print(out);
    CHECK_EQ(fclose(out), 0);
    char *committed = file_read_whole(SOURCE_DIR "/tests/wire/vectors.json");
    if (strcmp(printed, committed) != 0) {
        printf("build/release/tests/wire_vectors > tests/wire/vectors.json\n");
    }
    CHECK(strcmp(printed, committed) == 0);
    free(committed);
    free(printed);
}

// A server that says one hello.
static int listen_in_test_dir(char *path, size_t room)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(path, room, "%s/socket", test_dir());
    CHECK(strlen(path) < sizeof(address.sun_path));
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK_EQ(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    CHECK_EQ(listen(fd, 1), 0);
    return fd;
}

static bool req_accepts(const HelloVector *vector)
{
    char path[256];
    int listening = listen_in_test_dir(path, sizeof(path));
    pid_t child = fork();
    if (child == 0) {
        Buffer buffer = {.bytes = NULL};
        Slice hello = bytes_of(vector->bytes, &buffer);
        int peer = accept(listening, NULL, NULL);
        (void)!write(peer, hello.bytes, hello.size);
        (void)!read(peer, &(char[8]){0}, 8); // until the client is gone
        (void)!read(peer, &(char[8]){0}, 8);
        _exit(0);
    }
    CHECK(child > 0);
    close(listening);
    char why[SP_WHY_BYTES];
    int fd = sp_dial(path, clock_monotonic_ns() + HARNESS_PATIENCE_MS * INT64_C(1000000), why);
    if (fd >= 0) close(fd);
    unlink(path);
    return fd >= 0;
}

TEST(hellos_are_taken_as_the_vectors_say)
{
    for (size_t i = 0; i < HELLO_VECTOR_COUNT; i++) {
        const HelloVector *vector = &HELLO_VECTORS[i];
        CLEANUP(buffer_free) Buffer buffer = {.bytes = NULL};
        Slice hello = bytes_of(vector->bytes, &buffer);
        CHECK_EQ(hello.size, SP_HELLO_BYTES);
        printf("%s\n", vector->name);
        bool is_req = strcmp(vector->client, "req") == 0;
        CHECK_EQ(is_req ? req_accepts(vector) : sp_hello_is(hello.bytes, SP_PROTOCOL_PUB),
                 vector->is_ok);
    }
}

// Gives the reader the bytes in pieces, as a socket might, and compares what comes out.
static void frames_read(const FrameVector *vector, Slice bytes, size_t piece)
{
    SpReader *reader = calloc(1, sizeof(SpReader));
    CHECK(reader != NULL);
    reader->has_no_ids = true;
    SpResult result = SP_AGAIN;
    size_t frames = 0;
    uint32_t id;
    const char *why;
    while (result == SP_AGAIN) {
        Buffer payload;
        while ((result = sp_reader_next(reader, &id, &payload, &why)) == SP_DONE) {
            CLEANUP(buffer_free) Buffer wanted = {.bytes = NULL};
            CHECK(frames < FRAME_PAYLOADS_MAX && vector->payloads[frames] != NULL);
            CHECK_BYTES(buffer_slice(&payload), bytes_of(vector->payloads[frames++], &wanted));
            buffer_free(&payload);
        }
        if (result != SP_AGAIN || bytes.size == 0) break;
        size_t room;
        uint8_t *to = sp_reader_room(reader, &room);
        if (room > piece) room = piece;
        if (room > bytes.size) room = bytes.size;
        memcpy(to, bytes.bytes, room);
        sp_reader_took(reader, room);
        bytes = slice_skip(bytes, room);
    }
    CHECK(frames == FRAME_PAYLOADS_MAX || vector->payloads[frames] == NULL);
    bool is_between = reader->begin == reader->end && !reader->is_in_body;
    const char *then = result == SP_BROKEN ? "error" : is_between ? "end" : "more";
    CHECK_STR(then, vector->then);
    sp_reader_free(reader);
    free(reader);
}

TEST(frames_are_read_as_the_vectors_say_however_they_come)
{
    static const size_t PIECES[] = {1, 2, 7, 13, 4096, SIZE_MAX};
    for (size_t i = 0; i < FRAME_VECTOR_COUNT; i++) {
        const FrameVector *vector = &FRAME_VECTORS[i];
        if (strcmp(vector->transport, "ipc") != 0) continue; // libtine has NNG for tcp
        CLEANUP(buffer_free) Buffer buffer = {.bytes = NULL};
        Slice bytes = bytes_of(vector->bytes, &buffer);
        for (size_t j = 0; j < sizeof(PIECES) / sizeof(*PIECES); j++) {
            printf("%s in pieces of %zu\n", vector->name, PIECES[j]);
            frames_read(vector, bytes, PIECES[j]);
        }
    }
}

TEST(a_payload_without_room_for_an_id_is_no_reply)
{
    static const char *const SHORT[] = {"01[]", "01[80]", "01[800000]"};
    for (size_t i = 0; i < sizeof(SHORT) / sizeof(*SHORT); i++) {
        CLEANUP(buffer_free) Buffer buffer = {.bytes = NULL};
        Slice bytes = bytes_of(SHORT[i], &buffer);
        SpReader *reader = calloc(1, sizeof(SpReader));
        CHECK(reader != NULL);
        memcpy(reader->inbox, bytes.bytes, bytes.size);
        sp_reader_took(reader, bytes.size);
        uint32_t id;
        Buffer body;
        const char *why;
        CHECK_EQ(sp_reader_next(reader, &id, &body, &why), SP_BROKEN);
        sp_reader_free(reader);
        free(reader);
    }
}

TEST(requests_are_written_as_the_vectors_say)
{
    for (size_t i = 0; i < REQUEST_VECTOR_COUNT; i++) {
        const RequestVector *vector = &REQUEST_VECTORS[i];
        CLEANUP(buffer_free) Buffer wanted = {.bytes = NULL};
        CLEANUP(buffer_free) Buffer content = {.bytes = NULL};
        CLEANUP(buffer_free) Buffer written = {.bytes = NULL};
        request_vector_encode(vector, &wanted);
        Slice body = bytes_of(vector->body, &content);
        RequestEnvelope envelope = {
            .method = slice_of(vector->method),
            .operation_id = slice_of(vector->operation_id),
            .timeout_ms = vector->timeout_ms,
            .traceparent = slice_of(vector->traceparent),
            .token = slice_of(vector->token),
        };
        CHECK_EQ(envelope_request_write(&written, &envelope, body.size), ERROR_NONE);
        CHECK_EQ(buffer_append(&written, body), ERROR_NONE);
        printf("%s\n", vector->name);
        CHECK_BYTES(buffer_slice(&written), buffer_slice(&wanted));
    }
}

TEST(replies_are_read_as_the_vectors_say)
{
    for (size_t i = 0; i < RESPONSE_VECTOR_COUNT; i++) {
        const ResponseVector *vector = &RESPONSE_VECTORS[i];
        CLEANUP(buffer_free) Buffer reply = {.bytes = NULL};
        CLEANUP(buffer_free) Buffer wanted = {.bytes = NULL};
        TineStatus status;
        Slice body = {NULL, 0};
        printf("%s\n", vector->name);
        int code = status_of_response(bytes_of(vector->bytes, &reply), &status, &body);
        CHECK_EQ(code, vector->code);
        CHECK_EQ(status.code, code);
        if (!vector->is_ok) {
            CHECK_STR(status.message, "the reply cannot be decoded");
            continue;
        }
        CHECK_STR(status.message, vector->message);
        CHECK_STR(status.reason, vector->reason);
        CHECK_BYTES(body, bytes_of(vector->body, &wanted));
    }
}

TEST(events_are_read_as_the_vectors_say)
{
    for (size_t i = 0; i < EVENT_VECTOR_COUNT; i++) {
        const EventVector *vector = &EVENT_VECTORS[i];
        CLEANUP(buffer_free) Buffer buffer = {.bytes = NULL};
        Slice bytes = bytes_of(vector->bytes, &buffer);
        printf("%s\n", vector->name);
        BusMessage message;
        CHECK_EQ(bus_message_read(bytes, &message), vector->is_ok);
        if (!vector->is_ok) continue;
        CHECK_BYTES(message.topic, slice_of(vector->topic));
        CHECK(message.sequence == vector->sequence);
        CHECK_BYTES(message.type, slice_of(vector->type));
        Slice encoded = message.event;
        Tine__V1__Event *event = tine__v1__event__unpack(NULL, encoded.size, encoded.bytes);
        CHECK(event != NULL);
        CHECK(event->sequence == vector->sequence);
        CHECK(event->previous_session_sequence == message.previous_session_sequence);
        CHECK_BYTES(message.instance_id, slice_of(event->instance_id));
        CHECK_STR(event->type, vector->type);
        CHECK_STR(event->session_id, vector->session_id);
        tine__v1__event__free_unpacked(event, NULL);
    }
}
