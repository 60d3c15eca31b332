// Messages as JSON and back.

#include "json_message.h"

#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "json_random.h"
#include "names.h"
#include "text/json.h"

static char *written;
static size_t written_bytes;

static const char *json_of(const ProtobufCMessage *message, JsonLayout layout)
{
    free(written);
    FILE *out = open_memstream(&written, &written_bytes);
    CHECK(out != NULL);
    json_message_write(out, message, layout);
    CHECK_EQ(fclose(out), 0);
    return written;
}

static ProtobufCMessage *read_ok(const char *text, const ProtobufCMessageDescriptor *type)
{
    ErrorDetail detail = {{0}};
    ProtobufCMessage *message = NULL;
    Error error = json_message_read(slice_of(text), type, &detail, &message);
    if (error) printf("%s\nin %s\n", detail.text, text);
    CHECK_EQ(error, ERROR_NONE);
    return message;
}

static void check_fails(const char *text, const ProtobufCMessageDescriptor *type,
                        const char *expected)
{
    ErrorDetail detail = {{0}};
    ProtobufCMessage *message;
    CHECK_EQ(json_message_read(slice_of(text), type, &detail, &message), ERROR_INVALID_ARGUMENT);
    CHECK_STR(detail.text, expected);
}

static void check_same(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
    size_t size = protobuf_c_message_get_packed_size(a);
    CHECK_EQ(protobuf_c_message_get_packed_size(b), size);
    uint8_t *bytes = malloc(2 * size + 1);
    protobuf_c_message_pack(a, bytes);
    protobuf_c_message_pack(b, bytes + size);
    CHECK(memcmp(bytes, bytes + size, size) == 0);
    free(bytes);
}

TEST(every_message_of_the_contract_comes_back_as_it_was)
{
    const ProtobufCMessageDescriptor *types[MESSAGE_TYPES_MAX];
    size_t type_count = message_types(types), rounds = test_scaled(100);
    CHECK(type_count > 80);
    Random random;
    random_seed(&random, test_seed());
    for (size_t i = 0; i < type_count * rounds; i++) {
        const ProtobufCMessageDescriptor *type = types[i % type_count];
        ProtobufCMessage *message = message_random(&random, type);
        const char *text = json_of(message, i % 2 ? JSON_LINE : JSON_PRETTY);
        CHECK(json_is_valid(slice_of(text), NULL));
        if (i % 2) CHECK(!strchr(text, '\n'));
        ProtobufCMessage *again = read_ok(text, type);
        check_same(message, again);
        protobuf_c_message_free_unpacked(message, NULL);
        protobuf_c_message_free_unpacked(again, NULL);
    }
    free(written);
    written = NULL;
}

TEST(numbers_are_written_and_what_is_not_set_is_left_out)
{
    Totals totals = TOTALS__INIT;
    totals.cost_nano_usd = INT64_MIN;
    TotalsUpdate update = TOTALS_UPDATE__INIT;
    CHECK_STR(json_of(&update.base, JSON_LINE), "{}");
    update.totals = &totals;
    CHECK_STR(json_of(&update.base, JSON_LINE),
              "{\"totals\":{\"input_tokens\":0,\"output_tokens\":0,\"cache_read_tokens\":0,"
              "\"cache_write_tokens\":0,\"cost_nano_usd\":-9223372036854775808}}");
    Text text = TEXT__INIT;
    Part part = PART__INIT;
    part.kind_case = PART__KIND_TEXT;
    part.text = &text;
    CHECK_STR(json_of(&part.base, JSON_PRETTY),
              "{\n  \"started_at\": 0,\n  \"ended_at\": 0,\n  \"text\": {\n"
              "    \"synthetic\": false,\n    \"ignored\": false\n  }\n}");
    free(written);
}

TEST(text_cannot_take_over_a_terminal)
{
    Text text = TEXT__INIT;
    text.text = "\x1b[2J\xc2\x9b"
                "31m\xe2\x80\xae\xe2\x81\xa6\x7f\xff\xed\xa0\x80.";
    text.ignored = true;
    CHECK_STR(json_of(&text.base, JSON_LINE),
              "{\"text\":\"\\u001b[2J\\u009b31m\\u202e\\u2066\\u007f\xef\xbf\xbd\xef\xbf\xbd"
              "\xef\xbf\xbd\xef\xbf\xbd.\",\"synthetic\":false,\"ignored\":true}");
    free(written);
}

TEST(other_spellings_are_read)
{
    AppendMessageRequest *request = (AppendMessageRequest *)read_ok(
        " {\"sessionId\": \"s\", \"message\": {\"role\": \"user\", \"kind\": 2, \"parts\": ["
        "{\"startedAt\": \"123\", \"signature\": \"_-8\", \"text\": {\"text\": "
        "\"\\ud83c\\udf31\\u00e9\\/\"}}], \"usage\": null}, \"parent_id\": \"\"}\n",
        &append_message_request__descriptor);
    CHECK_STR(request->session_id, "s");
    CHECK_EQ(request->parent_case, APPEND_MESSAGE_REQUEST__PARENT_PARENT_ID);
    CHECK_EQ(request->message->role, ROLE_USER);
    CHECK_EQ(request->message->kind, MESSAGE_KIND_INJECTED);
    CHECK(request->message->usage == NULL);
    Part *part = request->message->parts[0];
    CHECK_EQ(part->started_at, 123);
    CHECK_BYTES(slice(part->signature.data, part->signature.len), slice("\xff\xef", 2));
    CHECK_STR(part->text->text, "\xf0\x9f\x8c\xb1\xc3\xa9/");
    protobuf_c_message_free_unpacked(&request->base, NULL);
}

TEST(an_error_says_where_it_is_and_what_was_expected)
{
    const ProtobufCMessageDescriptor *append = &append_message_request__descriptor;
    check_fails("{\"session_id\": \"é\",\n  \"message\": {\"parts\": [{}, {\"text\": 7}]}}", append,
                "line 2, column 38: message.parts[1].text: expected an object, not a number");
    check_fails("{\"sesion_id\": \"x\"}", append,
                "line 1, column 2: AppendMessageRequest has no field \"sesion_id\"; did you mean "
                "\"session_id\"?");
    check_fails("{\"qqqqqq\": 1}", append,
                "line 1, column 2: AppendMessageRequest has no field \"qqqqqq\"; `tine describe "
                "AppendMessageRequest` lists its fields");
    check_fails("{\"message\": {\"role\": \"ROLE_USR\"}}", append,
                "line 1, column 22: message.role: Role has no value \"ROLE_USR\"; did you mean "
                "\"ROLE_USER\"?");
    check_fails("{\"session_id\": \"a\", \"session_id\": \"b\"}", append,
                "line 1, column 21: session_id: this field is given twice");
    check_fails("{\"message\": {\"parts\": [{\"text\": {}, \"image\": {}}]}}", append,
                "line 1, column 46: message.parts[0].image: only one of its group can be set, and "
                "text is already");
    check_fails("{\"propagate_usage\": \"yes\"}", append,
                "line 1, column 21: propagate_usage: expected true or false, not a string");
    check_fails("[]", append, "line 1, column 1: expected an object, not a list");
    check_fails("", append, "line 1, column 1: expected an object, but the text ends here");
    check_fails("{} {}", append, "line 1, column 4: there is more text after the object's end");
    check_fails("{\"session_id\": \"\xff\"}", append, "line 1, column 1: this line is not UTF-8");
}

TEST(malformed_json_is_refused)
{
    const ProtobufCMessageDescriptor *append = &append_message_request__descriptor;
    check_fails("{\"session_id\": \"a\",}", append,
                "line 1, column 20: a comma with nothing after it");
    check_fails("{\"session_id\" \"a\"}", append, "line 1, column 15: expected ':', not a string");
    check_fails("{\"session_id\": \"a\"", append,
                "line 1, column 19: expected ',' or '}', but the text ends here");
    check_fails("{session_id: 1}", append,
                "line 1, column 2: expected a field's name in quotes, not 's'");
    check_fails("{\"session_id\": \"a", append,
                "line 1, column 16: session_id: this string has no end");
    check_fails("{\"session_id\": \"a\nb\"}", append,
                "line 1, column 18: session_id: a line ends inside a string; write \\n instead");
    check_fails("{\"session_id\": \"\\x\"}", append,
                "line 1, column 17: session_id: no such escape; a backslash itself is written as "
                "\\\\");
    check_fails("{\"session_id\": \"\\u00\"}", append,
                "line 1, column 17: session_id: \\u needs four hexadecimal digits");
    check_fails("{\"session_id\": \"\\ud800\"}", append,
                "line 1, column 17: session_id: half of a surrogate pair alone is no character");
    check_fails("{\"session_id\": \"\\u0000\"}", append,
                "line 1, column 17: session_id: a text may not hold a NUL");
    check_fails("{\"session_id\": tru}", append,
                "line 1, column 16: session_id: expected a string, not true or false");
    check_fails("{\"message\": {\"parts\": [{\"signature\": \"a\"}]}}", append,
                "line 1, column 38: message.parts[0].signature: this is not base64");
}

TEST(numbers_have_their_type_s_range)
{
    const ProtobufCMessageDescriptor *list = &list_events_request__descriptor;
    ListEventsRequest *request = (ListEventsRequest *)read_ok(
        "{\"after_sequence\": 18446744073709551615, \"limit\": 4294967295}", list);
    CHECK(request->after_sequence == UINT64_MAX);
    CHECK(request->limit == UINT32_MAX);
    protobuf_c_message_free_unpacked(&request->base, NULL);
    check_fails("{\"after_sequence\": 18446744073709551616}", list,
                "line 1, column 20: after_sequence: 18446744073709551616 is not between 0 and "
                "18446744073709551615");
    check_fails("{\"limit\": 4294967296}", list,
                "line 1, column 11: limit: 4294967296 is not between 0 and 4294967295");
    check_fails("{\"limit\": -1}", list,
                "line 1, column 11: limit: -1 is not between 0 and 4294967295");
    check_fails("{\"limit\": 1.5}", list,
                "line 1, column 11: limit: expected a whole number, not 1.5");
    check_fails("{\"limit\": 01}", list,
                "line 1, column 11: limit: expected a whole number, not 01");
    check_fails("{\"limit\": \"x\"}", list, "line 1, column 12: limit: expected a number, not 'x'");
    check_fails("{\"active_since\": 9223372036854775808}", &list_sessions_request__descriptor,
                "line 1, column 18: active_since: 9223372036854775808 is not between "
                "-9223372036854775808 and 9223372036854775807");
}

// A few bytes of JSON may stand for a message of half a kilobyte, so memory is bounded, too.
TEST(a_text_that_would_take_too_much_memory_is_refused)
{
    enum { COUNT = 1000 * 1000 };
    static const char BEGIN[] = "{\"sessions\":[", ELEMENT[] = "{},", END[] = "{}]}";
    size_t size = sizeof(BEGIN) + (sizeof(ELEMENT) - 1) * COUNT + sizeof(END);
    char *text = malloc(size), *at = text;
    at = stpcpy(at, BEGIN);
    for (size_t i = 0; i < COUNT; i++)
        at = stpcpy(at, ELEMENT);
    stpcpy(at, END);
    ErrorDetail detail;
    ProtobufCMessage *message;
    CHECK_EQ(json_message_read(slice_of(text), &list_sessions_response__descriptor, &detail,
                               &message),
             ERROR_INVALID_ARGUMENT);
    CHECK(strstr(detail.text, "this is too much") != NULL);
    free(text);
}
