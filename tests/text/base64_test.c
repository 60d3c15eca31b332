// Base64: known texts, both forms, and round trips of every length.

#include "text/base64.h"

#include "harness.h"
#include "os/random.h"

static void check_encoded(const char *bytes, const char *expected)
{
    char text[64] = "";
    base64_encode(slice_of(bytes), text);
    text[base64_encoded_bytes(strlen(bytes))] = '\0';
    CHECK_STR(text, expected);
}

TEST(base64_texts_of_the_standard)
{
    check_encoded("", "");
    check_encoded("f", "Zg==");
    check_encoded("fo", "Zm8=");
    check_encoded("foo", "Zm9v");
    check_encoded("foob", "Zm9vYg==");
    check_encoded("fooba", "Zm9vYmE=");
    check_encoded("foobar", "Zm9vYmFy");
}

// Returns SIZE_MAX if it is not base64.
static size_t decoded_size(const char *text, Base64Form form)
{
    char bytes[64];
    return base64_decode(slice_of(text), form, bytes);
}

TEST(base64_canonical_is_exactly_what_encode_writes)
{
    static const char *const LENIENT_ONLY[] = {"Zg", "Zm8", "_-8=", "Zh==", "Zm9=", "_-8"};
    static const char *const NEITHER[] = {"Z",    "Zg=",   "Zm9vY===", "Zm9v=", "Z===", "=",
                                          "====", "Zm 9v", "Zm9v\n",   "Zm=v",  "Zm9%"};
    for (size_t i = 0; i < sizeof(LENIENT_ONLY) / sizeof(*LENIENT_ONLY); i++) {
        CHECK(decoded_size(LENIENT_ONLY[i], BASE64_LENIENT) != SIZE_MAX);
        CHECK_EQ(decoded_size(LENIENT_ONLY[i], BASE64_CANONICAL), SIZE_MAX);
    }
    for (size_t i = 0; i < sizeof(NEITHER) / sizeof(*NEITHER); i++) {
        CHECK_EQ(decoded_size(NEITHER[i], BASE64_LENIENT), SIZE_MAX);
        CHECK_EQ(decoded_size(NEITHER[i], BASE64_CANONICAL), SIZE_MAX);
    }
    CHECK_EQ(decoded_size("", BASE64_CANONICAL), 0);
}

TEST(base64_comes_back_from_every_length_also_in_place)
{
    enum { SIZE_MAX_TRIED = 300 };
    uint8_t bytes[SIZE_MAX_TRIED];
    char text[SIZE_MAX_TRIED * 4 / 3 + 4];
    Random random;
    random_seed(&random, 5);
    for (size_t size = 0; size <= SIZE_MAX_TRIED; size++) {
        for (size_t i = 0; i < size; i++)
            bytes[i] = (uint8_t)random_below(&random, 256);
        base64_encode(slice(bytes, size), text);
        size_t text_size = base64_encoded_bytes(size);
        CHECK(base64_decoded_bytes_max(text_size) >= size);
        size_t back = base64_decode(slice(text, text_size), BASE64_CANONICAL, text);
        CHECK_BYTES(slice(text, back), slice(bytes, size));
    }
}
