// Validates JSON in one pass over the bytes, without recursion. The open brackets are a stack of
// single bits (1: an object), so nesting costs one bit a level.

#include "text/json.h"

#include "base/limits.h"
#include "text/json_scan.h"

typedef struct Json {
    Slice text;
    size_t at; // the next byte; after a failure, where it is
    size_t depth, depth_max;
    uint8_t *is_object; // depth_max bits
} Json;

static bool json_text(Json *json);
static bool json_value_start(Json *json, bool *out_is_open);
static bool json_value_end(Json *json, bool *out_is_whole);
static bool json_open(Json *json, bool is_object);
static bool json_key(Json *json);
static bool json_string(Json *json);
static bool json_escape(Json *json);
static bool json_number(Json *json);
static bool json_digits(Json *json);
static bool json_literal(Json *json, const char *literal);

bool json_is_valid(Slice text, size_t *out_offset)
{
    uint8_t is_object[(JSON_DEPTH_MAX + 7) / 8];
    Json json = {.text = text, .depth_max = JSON_DEPTH_MAX, .is_object = is_object};
    if (json_text(&json)) return true;
    if (out_offset) *out_offset = json.at;
    return false;
}

bool json_is_well_formed(Slice text)
{
    uint8_t is_object[(JSON_FOREIGN_DEPTH_MAX + 7) / 8];
    Json json = {.text = text, .depth_max = JSON_FOREIGN_DEPTH_MAX, .is_object = is_object};
    return json_text(&json);
}

// The next byte, or -1 at the end.
static int json_peek(const Json *json)
{
    return json->at < json->text.size ? json->text.bytes[json->at] : -1;
}

static bool json_take(Json *json, char expected)
{
    if (json_peek(json) != expected) return false;
    json->at++;
    return true;
}

static void json_space(Json *json)
{
    json->at = json_skip_space(json->text, json->at);
}

static bool json_in_object(const Json *json)
{
    size_t level = json->depth - 1;
    return json->is_object[level / 8] >> (level % 8) & 1;
}

static bool json_text(Json *json)
{
    bool is_whole = false;
    while (!is_whole) {
        bool is_open;
        if (!json_value_start(json, &is_open)) return false;
        if (is_open) continue;
        if (!json_value_end(json, &is_whole)) return false;
    }
    json_space(json);
    return json->at == json->text.size;
}

// Takes a scalar or an empty container; or an opening bracket and what stands before its first
// value: then `out_is_open` is true, and that value is next.
static bool json_value_start(Json *json, bool *out_is_open)
{
    *out_is_open = false;
    json_space(json);
    switch (json_peek(json)) {
    case '{':
        if (!json_open(json, /* is_object= */ true)) return false;
        json_space(json);
        if (json_peek(json) == '}') return true;
        *out_is_open = true;
        return json_key(json);
    case '[':
        if (!json_open(json, /* is_object= */ false)) return false;
        json_space(json);
        *out_is_open = json_peek(json) != ']';
        return true;
    case '"': return json_string(json);
    case 't': return json_literal(json, "true");
    case 'f': return json_literal(json, "false");
    case 'n': return json_literal(json, "null");
    default: return json_number(json);
    }
}

// Called after a value or inside an empty container. Closes the containers that end here. Then
// either the text is complete, or a comma was taken (in an object also a key) and a value is next.
static bool json_value_end(Json *json, bool *out_is_whole)
{
    while (json->depth > 0) {
        bool in_object = json_in_object(json);
        json_space(json);
        if (json_take(json, ',')) {
            *out_is_whole = false;
            return in_object ? json_key(json) : true;
        }
        if (!json_take(json, in_object ? '}' : ']')) return false;
        json->depth--;
    }
    *out_is_whole = true;
    return true;
}

static bool json_open(Json *json, bool is_object)
{
    if (json->depth == json->depth_max) return false;
    uint8_t *byte = &json->is_object[json->depth / 8];
    uint8_t bit = (uint8_t)(1u << (json->depth % 8));
    *byte = (uint8_t)(is_object ? *byte | bit : *byte & ~bit);
    json->depth++;
    json->at++;
    return true;
}

static bool json_key(Json *json)
{
    json_space(json);
    if (json_peek(json) != '"' || !json_string(json)) return false;
    json_space(json);
    return json_take(json, ':');
}

typedef uint8_t Block __attribute__((vector_size(16)));

#define BLOCK_OF(byte)                                                                             \
    {                                                                                              \
        (byte), (byte), (byte), (byte), (byte), (byte), (byte), (byte), (byte), (byte), (byte),    \
            (byte), (byte), (byte), (byte), (byte)                                                 \
    }

static const Block QUOTES = BLOCK_OF('"');
static const Block BACKSLASHES = BLOCK_OF('\\');
static const Block SPACES = BLOCK_OF(0x20);

static bool is_plain(uint8_t byte)
{
    return byte >= 0x20 && byte != '"' && byte != '\\';
}

// Returns the index of the first byte that is not zero, in memory order.
static size_t first_set(uint64_t bytes)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (size_t)__builtin_ctzll(bytes) / 8;
#else
    return (size_t)__builtin_clzll(bytes) / 8;
#endif
}

// Returns how many bytes precede the first quote, backslash or control character.
static size_t plain_size(const uint8_t *bytes, size_t size)
{
    size_t at = 0;
    for (; size - at >= sizeof(Block); at += sizeof(Block)) {
        Block block;
        uint64_t halves[2];
        memcpy(&block, bytes + at, sizeof block);
        Block ends = (Block)((block == QUOTES) | (block == BACKSLASHES) | (block < SPACES));
        memcpy(halves, &ends, sizeof halves);
        if (halves[0]) return at + first_set(halves[0]);
        if (halves[1]) return at + sizeof(uint64_t) + first_set(halves[1]);
    }
    while (at < size && is_plain(bytes[at]))
        at++;
    return at;
}

static bool json_string(Json *json)
{
    const uint8_t *bytes = json->text.bytes;
    json->at++;
    for (;;) {
        json->at += plain_size(bytes + json->at, json->text.size - json->at);
        if (json->at == json->text.size) return false;
        uint8_t byte = bytes[json->at];
        if (byte < 0x20) return false;
        if (byte == '\\') {
            if (!json_escape(json)) return false;
            continue;
        }
        json->at++;
        return true;
    }
}

// A lone surrogate is allowed: RFC 8259, section 8.2, leaves its meaning to the reader.
static bool json_escape(Json *json)
{
    json->at++;
    int letter = json_peek(json);
    if (letter <= 0 || !strchr("\"\\/bfnrtu", letter)) return false;
    json->at++;
    if (letter != 'u') return true;

    for (size_t i = 0; i < 4; i++) {
        int digit = json_peek(json);
        bool is_hex = (digit >= '0' && digit <= '9') || (digit >= 'a' && digit <= 'f') ||
                      (digit >= 'A' && digit <= 'F');
        if (!is_hex) return false;
        json->at++;
    }
    return true;
}

static bool json_number(Json *json)
{
    json_take(json, '-');
    if (!json_take(json, '0') && !json_digits(json)) return false;
    if (json_take(json, '.') && !json_digits(json)) return false;
    if (json_take(json, 'e') || json_take(json, 'E')) {
        if (!json_take(json, '-')) json_take(json, '+');
        return json_digits(json);
    }
    return true;
}

// Takes one digit or more.
static bool json_digits(Json *json)
{
    size_t start = json->at;
    int byte = json_peek(json);
    while (byte >= '0' && byte <= '9') {
        json->at++;
        byte = json_peek(json);
    }
    return json->at > start;
}

static bool json_literal(Json *json, const char *literal)
{
    for (; *literal; literal++) {
        if (!json_take(json, *literal)) return false;
    }
    return true;
}
