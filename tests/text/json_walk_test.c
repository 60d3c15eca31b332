// JSON in place: members, elements, keys with escapes, texts and numbers.

#include "text/json_walk.h"

#include <stdlib.h>

#include "harness.h"

static Slice member(const char *object, const char *name)
{
    Slice value = {0};
    CHECK_EQ(json_members(slice_of(object), &name, 1, &value, NULL), ERROR_NONE);
    return value;
}

TEST(json_walk_goes_over_members_and_elements)
{
    static const char OBJECT[] = " {\"a\" : 1 , \"b\":[1, {\"]\": \"}\"}], \"c\":\"x\\\"y\"} ";
    Slice object = slice_of(OBJECT + 1), key, value;
    JsonWalk walk = json_walk(object);
    CHECK(json_walk_next(&walk, &key, &value));
    CHECK_BYTES(key, slice_of("\"a\""));
    CHECK_BYTES(value, slice_of("1"));
    CHECK(json_walk_next(&walk, &key, &value));
    CHECK_BYTES(value, slice_of("[1, {\"]\": \"}\"}]"));
    JsonWalk list = json_walk(value);
    CHECK(json_walk_next(&list, &key, &value));
    CHECK_EQ(key.size, 0);
    CHECK(json_walk_next(&list, &key, &value));
    CHECK_BYTES(value, slice_of("{\"]\": \"}\"}"));
    CHECK(!json_walk_next(&list, &key, &value));
    CHECK(json_walk_next(&walk, &key, &value));
    CHECK_BYTES(value, slice_of("\"x\\\"y\""));
}

TEST(json_walk_of_what_is_no_container_has_ended)
{
    static const char *const TEXTS[] = {"", "1", "\"{}\"", "true", "{}", "[]", "[ ]"};
    for (size_t i = 0; i < sizeof(TEXTS) / sizeof(*TEXTS); i++) {
        JsonWalk walk = json_walk(slice_of(TEXTS[i]));
        Slice key, value;
        CHECK(!json_walk_next(&walk, &key, &value));
    }
}

TEST(json_members_the_last_of_a_name_counts_and_the_rest_is_kept)
{
    static const char *const NAMES[] = {"a", "b", "none"};
    Slice found[3];
    Buffer rest = {0};
    CHECK_EQ(buffer_reset(&rest, 0), ERROR_NONE);
    Slice object = slice_of("{\"a\":1,\"x\":[2],\"\\u0062\":3,\"a\":4,\"y\":\"z\"}");
    CHECK_EQ(json_members(object, NAMES, 3, found, &rest), ERROR_NONE);
    CHECK_BYTES(found[0], slice_of("4"));
    CHECK_BYTES(found[1], slice_of("3"));
    CHECK_EQ(found[2].size, 0);
    CHECK_BYTES(buffer_slice(&rest), slice_of("\"x\":[2],\"y\":\"z\""));
    buffer_free(&rest);
}

TEST(json_key_with_escapes_is_its_name)
{
    CHECK(json_key_is(slice_of("\"role\""), "role"));
    CHECK(json_key_is(slice_of("\"r\\u006fle\""), "role"));
    CHECK(!json_key_is(slice_of("\"roles\""), "role"));
    CHECK(!json_key_is(slice_of("\"r\\u006fles\""), "role"));
    CHECK(!json_key_is(slice_of("\"r\\ud800le\""), "role"));
    CHECK(!json_key_is(slice_of("\""), "role"));
}

TEST(json_text_is_decoded_and_mended)
{
    Arena arena;
    arena_init(&arena, 4096);
    CHECK_STR(json_text(&arena, slice_of("\"a\\nb\"")), "a\nb");
    CHECK_STR(json_text(&arena, slice_of("\"\\u0000\\ud800x\"")), "\ufffd\ufffdx");
    CHECK_STR(json_text(&arena, slice_of("\"a\xff\"")), "a\ufffd");
    CHECK_STR(json_text(&arena, slice_of("12")), "");
    CHECK_STR(json_text(&arena, slice_of("\"\"")), "");
    arena_reset(&arena, 2);
    CHECK(json_text(&arena, slice_of("\"too long\"")) == NULL);
    arena_free(&arena);
}

TEST(json_number_is_what_strtod_says)
{
    static const char *const NUMBERS[] = {"0",    "7",   "-0",
                                          "-1",   "1e3", "12.5",
                                          "1E-3", "10",  "999999999999999",
                                          "0.1",  "-2",  "123456789012345678901234567890"};
    for (size_t i = 0; i < sizeof(NUMBERS) / sizeof(*NUMBERS); i++)
        CHECK(json_number(slice_of(NUMBERS[i])) == strtod(NUMBERS[i], NULL));
    CHECK(json_number(slice_of("\"1\"")) == 0);
    CHECK_EQ(json_integer(slice_of("-1.5")), -2);
    CHECK_EQ(json_integer(slice_of("1e300")), 0);
    CHECK_EQ(json_integer(member("{\"a\":2.4}", "a")), 2);
}

TEST(json_kinds_are_told_by_the_first_byte)
{
    CHECK(json_is_true(member("{\"a\":true}", "a")));
    CHECK(json_is_false(member("{\"a\":false}", "a")));
    CHECK(json_is_text(member("{\"a\":\"\"}", "a")));
    CHECK(json_is_list(member("{\"a\":[]}", "a")));
    CHECK(json_is_object(member("{\"a\":{}}", "a")));
    CHECK(!json_is_text(member("{}", "a")));
}
