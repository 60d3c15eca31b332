// Messages of the bus: topics, and what a subscriber reads of an event.

#include "wire/bus_message.h"

#include "base/limits.h"
#include "harness.h"

static const char SESSION[] = "01K00000000000000000000000";

TEST(a_topic_names_the_session_and_the_type)
{
    char topic[BUS_TOPIC_BYTES_MAX];
    CHECK_EQ(bus_topic_write(slice_of(SESSION), slice_of("message.appended"), topic), 51);
    CHECK_STR(topic, "session/01K00000000000000000000000/message.appended");
    CHECK_EQ(bus_topic_write(slice_of(""), slice_of("my.event"), topic), 15);
    CHECK_STR(topic, "global/my.event");
    CHECK_EQ(bus_topic_write(slice_of(SESSION), slice_of(""), topic), 35);
    CHECK_STR(topic, "session/01K00000000000000000000000/");
}

TEST(the_longest_type_has_room_in_a_topic)
{
    char type[STRING_BYTES_MAX], topic[BUS_TOPIC_BYTES_MAX];
    memset(type, 'x', sizeof(type));
    size_t size = bus_topic_write(slice_of(SESSION), slice(type, sizeof(type)), topic);
    CHECK_EQ(size, 35 + STRING_BYTES_MAX);
    CHECK_EQ(strlen(topic), size);
}

TEST(a_message_is_read_as_it_was_written)
{
    Slice topic = slice_of("global/t");
    Slice event = slice_of("\x08\x07\x10\x05\x1a\x01i\x2a\x01t");
    uint8_t bytes[64];
    size_t size = bus_message_bytes(topic.size, event.size);
    bus_message_write(bytes, topic, event);
    BusMessage message;
    CHECK(bus_message_read(slice(bytes, size), &message));
    CHECK_BYTES(message.topic, topic);
    CHECK_BYTES(message.event, event);
    CHECK_EQ(message.sequence, 7);
    CHECK_EQ(message.previous_session_sequence, 5);
    CHECK_BYTES(message.instance_id, slice_of("i"));
    CHECK_BYTES(message.type, slice_of("t"));
}

TEST(a_message_without_a_zero_byte_is_none)
{
    BusMessage message;
    CHECK(!bus_message_read(slice_of(""), &message));
    CHECK(!bus_message_read(slice_of("global/t"), &message));
}
