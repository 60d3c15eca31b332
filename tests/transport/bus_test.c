// The bus: what subscribers hear, and what rude ones can do.

#include <nng/nng.h>
#include <nng/protocol/pubsub0/sub.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "os/socket_path.h"
#include "server.h"
#include "transport/bus.h"
#include "wire/bus_message.h"

enum { SELDOM_MS = 3600 * 1000 }; // a heartbeat that only arrivals bring

typedef struct Bused {
    Server server;
    Bus *bus;
    IdText session; // event 1
    char path[SOCKET_PATH_BYTES_MAX + 1];
} Bused;

static void bus_open(Bused *b, int64_t heartbeat_ms, size_t subscribers_max)
{
    BusOptions options = {
        .engine = b->server.engine,
        .socket_path = b->server.path,
        .subscribers_max = subscribers_max,
        .heartbeat_ms = heartbeat_ms,
    };
    ErrorDetail detail = {{0}};
    Error error = bus_start(&options, &detail, &b->bus);
    if (error) printf("%s\n", detail.text);
    CHECK_EQ(error, ERROR_NONE);
}

static void bused_open(Bused *b, int64_t heartbeat_ms, size_t subscribers_max)
{
    server_open(&b->server, NULL);
    engine_new_session(b->server.engine, NULL, b->session);
    CHECK(socket_path_of_events(b->server.path, b->path));
    bus_open(b, heartbeat_ms, subscribers_max);
}

static void bused_close(Bused *b)
{
    bus_close(b->bus);
    server_close(&b->server);
}

static Sp sub_connect(Bused *b)
{
    Sp sp = sp_connect(b->path);
    CHECK(sp_hello(sp, SP_SUB));
    CHECK_EQ(sp_read_hello(sp), SP_PUB);
    return sp;
}

// One message: its topic is copied, its Event is to be freed.
typedef struct News {
    char topic[BUS_TOPIC_BYTES_MAX];
    Event *event;
} News;

static void news_free(News *news)
{
    if (news->event) protobuf_c_message_free_unpacked(&news->event->base, NULL);
    news->event = NULL;
}

static void news_read(Slice message, News *out)
{
    const uint8_t *end = memchr(message.bytes, 0, message.size);
    CHECK(end != NULL);
    size_t topic_bytes = (size_t)(end - message.bytes);
    CHECK(topic_bytes < sizeof(out->topic));
    memcpy(out->topic, message.bytes, topic_bytes + 1);
    Slice bytes = slice_skip(message, topic_bytes + 1);
    out->event =
        (Event *)protobuf_c_message_unpack(&event__descriptor, NULL, bytes.size, bytes.bytes);
    CHECK(out->event != NULL);
}

// False: the connection is closed.
static bool news_receive(Sp sp, News *out)
{
    Slice frame;
    if (!sp_receive_frame(sp, &frame)) return false;
    news_read(frame, out);
    sp_free(&frame);
    return true;
}

static bool is_heartbeat(const News *news)
{
    CHECK_EQ(strcmp(news->topic, "heartbeat") == 0, strcmp(news->event->type, "heartbeat") == 0);
    return strcmp(news->topic, "heartbeat") == 0;
}

// Receives a heartbeat, which must be next, and returns its sequence.
static uint64_t heartbeat_next(Sp sp)
{
    News news;
    CHECK(news_receive(sp, &news));
    CHECK(is_heartbeat(&news));
    uint64_t sequence = news.event->sequence;
    news_free(&news);
    return sequence;
}

// Subscribes, and has heard by now that it counts.
static Sp sub_open(Bused *b)
{
    Sp sp = sub_connect(b);
    (void)heartbeat_next(sp);
    return sp;
}

// The next message that is no heartbeat.
static void news_next(Sp sp, News *out)
{
    for (;;) {
        CHECK(news_receive(sp, out));
        if (!is_heartbeat(out)) return;
        news_free(out);
    }
}

static void append(Bused *b)
{
    engine_append_text(b->server.engine, b->session, "m", NULL);
}

static void broadcast(Bused *b, const char *type, char *data_json)
{
    BroadcastEventRequest request = BROADCAST_EVENT_REQUEST__INIT;
    request.type = (char *)(uintptr_t)type;
    if (data_json) request.data_json = data_json;
    CHECK_EQ(engine_call(b->server.engine, METHOD_BROADCAST_EVENT, &request, NULL, NULL),
             ERROR_NONE);
}

TEST(a_subscriber_hears_a_heartbeat_first_and_then_each_event)
{
    CLEANUP(bused_close) Bused b;
    bused_open(&b, SELDOM_MS, 0);
    Sp sp = sub_connect(&b);
    News news;
    CHECK(news_receive(sp, &news));
    CHECK(is_heartbeat(&news));
    CHECK_EQ(news.event->sequence, 1);
    CHECK_STR(news.event->instance_id, store_instance_id(engine_store(b.server.engine)));
    CHECK(news.event->created_at > 0);
    CHECK_STR(news.event->session_id, "");
    news_free(&news);

    IdText message;
    engine_append_text(b.server.engine, b.session, "m", message);
    char topic[BUS_TOPIC_BYTES_MAX];
    snprintf(topic, sizeof(topic), "session/%s/message.appended", b.session);
    CHECK(news_receive(sp, &news));
    CHECK_STR(news.topic, topic);
    CHECK_EQ(news.event->sequence, 2);
    CHECK_EQ(news.event->previous_session_sequence, 1);
    CHECK_STR(news.event->session_id, b.session);
    CHECK_STR(news.event->message_id, message);
    news_free(&news);

    broadcast(&b, "mine", NULL);
    CHECK(news_receive(sp, &news));
    CHECK_STR(news.topic, "global/mine");
    CHECK_EQ(news.event->sequence, 0);
    news_free(&news);
    sp_close(&sp);
}

TEST(a_subscriber_of_libnng_filters_by_topic)
{
    CLEANUP(bused_close) Bused b;
    bused_open(&b, SELDOM_MS, 0);
    IdText other;
    engine_new_session(b.server.engine, NULL, other);
    nng_socket socket;
    nng_msg *message;
    char url[160], topic[BUS_TOPIC_BYTES_MAX];
    snprintf(url, sizeof(url), "ipc://%s", b.path);
    CHECK_EQ(nng_sub0_open(&socket), 0);
    snprintf(topic, sizeof(topic), "session/%s/", b.session);
    CHECK_EQ(nng_socket_set(socket, NNG_OPT_SUB_SUBSCRIBE, topic, strlen(topic)), 0);
    CHECK_EQ(nng_socket_set(socket, NNG_OPT_SUB_SUBSCRIBE, "heartbeat", 9), 0);
    CHECK_EQ(nng_dial(socket, url, NULL, 0), 0);
    CHECK_EQ(nng_recvmsg(socket, &message, 0), 0); // the heartbeat
    nng_msg_free(message);

    engine_append_text(b.server.engine, other, "not asked for", NULL);
    broadcast(&b, "mine", NULL);
    append(&b);
    CHECK_EQ(nng_recvmsg(socket, &message, 0), 0);
    News news;
    news_read(slice(nng_msg_body(message), nng_msg_len(message)), &news);
    nng_msg_free(message);
    CHECK_STR(news.event->session_id, b.session);
    CHECK_EQ(news.event->sequence, 4);
    news_free(&news);
    nng_close(socket);
}

TEST(the_event_socket_is_its_owners)
{
    Bused b;
    bused_open(&b, SELDOM_MS, 0);
    struct stat found;
    CHECK_EQ(stat(b.path, &found), 0);
    CHECK(S_ISSOCK(found.st_mode));
    CHECK_EQ(found.st_mode & 0777, 0600);
    bused_close(&b);
    CHECK(stat(b.path, &found) != 0);
}

TEST(a_path_too_long_for_events_is_refused)
{
    CLEANUP(server_close) Server server;
    server_open(&server, NULL);
    char path[SOCKET_PATH_BYTES_MAX + 1];
    memset(path, 'p', sizeof(path));
    path[SOCKET_PATH_BYTES_MAX] = '\0';
    BusOptions options = {.engine = server.engine, .socket_path = path};
    ErrorDetail detail = {{0}};
    Bus *bus;
    CHECK_EQ(bus_start(&options, &detail, &bus), ERROR_INVALID_ARGUMENT);
    CHECK(strstr(detail.text, "is too long"));
}

// Each heartbeat says how far the events before it went.
TEST(a_fast_subscriber_hears_a_burst_whole_and_in_order)
{
    CLEANUP(bused_close) Bused b;
    bused_open(&b, /* heartbeat_ms= */ 1, 0);
    Sp sp = sub_open(&b);
    uint64_t count = 2000, last = 1;
    PendingCall **pending = calloc(count, sizeof(*pending));
    CHECK(pending != NULL);
    for (uint64_t i = 0; i < count; i++)
        pending[i] = pending_append(b.server.engine, b.session, "burst", 0);
    bool has_last_beat = false;
    while (last < count + 1 || !has_last_beat) {
        News news;
        CHECK(news_receive(sp, &news));
        bool is_beat = is_heartbeat(&news);
        if (is_beat) {
            CHECK_EQ(news.event->sequence, last);
            has_last_beat = last == count + 1;
        } else {
            CHECK_EQ(news.event->sequence, last + 1);
            CHECK_EQ(news.event->previous_session_sequence, last);
            last++;
        }
        news_free(&news);
    }
    for (uint64_t i = 0; i < count; i++)
        CHECK_EQ(pending_wait(pending[i]), ERROR_NONE);
    free(pending);
    sp_close(&sp);
}

TEST(what_the_bus_tells_of_can_be_read)
{
    CLEANUP(bused_close) Bused b;
    bused_open(&b, SELDOM_MS, 0);
    Sp sp = sub_open(&b), good = sp_open(b.server.path);
    for (size_t i = 0; i < test_scaled(500); i++) {
        PendingCall *pending = pending_append(b.server.engine, b.session, "m", 0);
        News news;
        news_next(sp, &news);
        call_expect(good, request_get_message(news.event->message_id), STATUS_OK);
        news_free(&news);
        CHECK_EQ(pending_wait(pending), ERROR_NONE);
    }
    sp_close(&good);
    sp_close(&sp);
}

TEST(heartbeats_go_on_while_nothing_happens)
{
    CLEANUP(bused_close) Bused b;
    bused_open(&b, /* heartbeat_ms= */ 1, 0);
    Sp sp = sub_open(&b);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(heartbeat_next(sp), 1);
    sp_close(&sp);
}

// Past what the kernel holds and the bus keeps for it, the oldest are lost; the newest come.
TEST(a_subscriber_that_pauses_sees_a_gap_and_the_newest_events)
{
    CLEANUP(bused_close) Bused b;
    bused_open(&b, SELDOM_MS, 0);
    Sp slow = sub_open(&b), fast = sub_open(&b);
    CHECK_EQ(heartbeat_next(slow), 1); // the other's arrival
    char *json = malloc(1024);
    CHECK(json != NULL);
    memset(json, ' ', 1024);
    memcpy(json, "1", 1);
    json[1023] = '\0';
    size_t count = BUS_SEND_MESSAGES_MAX + 4000;
    News news;
    for (size_t i = 0; i < count; i++) {
        PublishEventRequest request = PUBLISH_EVENT_REQUEST__INIT;
        request.type = "large";
        request.data_json = json;
        CHECK_EQ(engine_call(b.server.engine, METHOD_PUBLISH_EVENT, &request, NULL, NULL),
                 ERROR_NONE);
        news_next(fast, &news); // nothing of the other's trouble
        CHECK_EQ(news.event->sequence, 2 + i);
        news_free(&news);
    }
    free(json);
    uint64_t last = 1, heard = 0;
    while (last < count + 1) {
        news_next(slow, &news);
        CHECK(news.event->sequence > last);
        last = news.event->sequence;
        heard++;
        news_free(&news);
    }
    CHECK(heard < count);
    CHECK(heard >= BUS_SEND_MESSAGES_MAX);
    sp_close(&slow);
    sp_close(&fast);
}

static void wait_for_subscribers(Bused *b, size_t count)
{
    while (bus_subscriber_count(b->bus) != count)
        sched_yield();
}

TEST(a_thousand_subscribers_that_hang_up_leave_nothing_behind)
{
    CLEANUP(bused_close) Bused b;
    bused_open(&b, SELDOM_MS, 0);
    Sp good = sub_open(&b);
    wait_for_subscribers(&b, 1);
    size_t before = descriptor_count(), count = test_scaled(1000);
    for (size_t i = 0; i < count; i++) {
        Sp sp = sp_connect(b.path);
        if (i % 4 > 0) CHECK(sp_hello(sp, i % 4 == 1 ? SP_REQ : SP_SUB));
        if (i % 4 == 3) CHECK_EQ(sp_read_hello(sp), SP_PUB);
        if (i % 16 == 7) append(&b);
        sp_close(&sp);
    }
    wait_for_subscribers(&b, 1);
    wait_for_descriptors(before);
    News news;
    for (size_t i = 0; i < count; i++) {
        if (i % 16 != 7) continue;
        news_next(good, &news);
        news_free(&news);
    }
    sp_close(&good);
    wait_for_subscribers(&b, 0);
}

TEST(a_thousand_subscribers_all_hear)
{
    CLEANUP(bused_close) Bused b;
    bused_open(&b, SELDOM_MS, 0);
    size_t count = test_scaled(1000);
    Sp *subscribers = calloc(count, sizeof(Sp));
    CHECK(subscribers != NULL);
    for (size_t i = 0; i < count; i++)
        subscribers[i] = sub_open(&b);
    append(&b);
    for (size_t i = 0; i < count; i++) {
        News news;
        news_next(subscribers[i], &news);
        CHECK_EQ(news.event->sequence, 2);
        news_free(&news);
        sp_close(&subscribers[i]);
    }
    free(subscribers);
    wait_for_subscribers(&b, 0);
}

TEST(a_subscriber_that_talks_is_cut_off_alone)
{
    CLEANUP(bused_close) Bused b;
    bused_open(&b, SELDOM_MS, 0);
    Sp good = sub_open(&b);
    static const uint8_t BOMB[] = {1, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    for (int i = 0; i < 3; i++) {
        Sp rude = sub_open(&b);
        if (i == 0) CHECK(sp_send(rude, 1, slice_of("hello")));
        if (i == 1) CHECK(sp_write(rude, BOMB, sizeof(BOMB)));
        if (i == 2) CHECK(sp_write(rude, "garbage, and more of it", 23));
        sp_wait_closed(rude);
        sp_close(&rude);
    }
    append(&b);
    News news;
    news_next(good, &news);
    CHECK_EQ(news.event->sequence, 2);
    news_free(&news);
    sp_close(&good);
}

TEST(subscribers_past_the_limit_are_refused_until_one_leaves)
{
    CLEANUP(bused_close) Bused b;
    bused_open(&b, SELDOM_MS, /* subscribers_max= */ 2);
    Sp first = sub_open(&b), second = sub_open(&b), third = sp_connect(b.path);
    CHECK(sp_hello(third, SP_SUB));
    sp_wait_closed(third);
    sp_close(&third);
    sp_close(&first);
    wait_for_subscribers(&b, 1);
    third = sub_open(&b);
    append(&b);
    News news;
    news_next(third, &news);
    CHECK_EQ(news.event->sequence, 2);
    news_free(&news);
    sp_close(&third);
    sp_close(&second);
}

TEST(the_bus_comes_back_on_the_same_path)
{
    CLEANUP(bused_close) Bused b;
    bused_open(&b, SELDOM_MS, 0);
    Sp sp = sub_open(&b);
    bus_close(b.bus);
    sp_wait_closed(sp);
    sp_close(&sp);
    append(&b); // while nobody can hear it
    bus_open(&b, SELDOM_MS, 0);
    sp = sub_connect(&b);
    CHECK_EQ(heartbeat_next(sp), 2); // and who lists after it has it
    sp_close(&sp);
}
