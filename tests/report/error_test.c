// Errors: the list is complete and well-formed, and a detail is always a valid protobuf string.

#include "report/error_detail.h"

#include <errno.h>
#include <string.h>

#include "harness.h"
#include "text/utf8.h"

static bool is_upper_snake(const char *text)
{
    size_t size = strlen(text);
    if (size == 0 || strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != size) return false;
    return text[0] != '_' && text[size - 1] != '_' && !strstr(text, "__");
}

TEST(error_none_is_zero_and_ok)
{
    CHECK_EQ(ERROR_NONE, 0);
    CHECK_EQ(error_status(ERROR_NONE), STATUS_OK);
    CHECK_STR(error_reason(ERROR_NONE), "");
    CHECK_STR(error_text(ERROR_NONE), "");
}

TEST(error_list_has_a_code_a_reason_and_a_text_in_every_row)
{
    for (int error = 1; error < ERROR_COUNT; error++) {
        StatusCode status = error_status((Error)error);
        CHECK(status > STATUS_OK && status <= STATUS_UNAUTHENTICATED);
        CHECK(is_upper_snake(error_reason((Error)error)));
        CHECK(strlen(error_text((Error)error)) > 0);
        CHECK(strlen(error_text((Error)error)) < ERROR_DETAIL_BYTES_MAX);
    }
}

// A caller that branches on the reason must get the same code with it.
TEST(error_reasons_that_are_shared_have_one_code)
{
    for (int a = 1; a < ERROR_COUNT; a++) {
        for (int b = a + 1; b < ERROR_COUNT; b++) {
            if (strcmp(error_reason((Error)a), error_reason((Error)b)) != 0) continue;
            CHECK_EQ(error_status((Error)a), error_status((Error)b));
        }
    }
}

TEST(error_rows_belong_to_their_names)
{
#define X(name, code, reason, text)                                                                \
    CHECK_EQ(error_status(ERROR_##name), STATUS_##code);                                           \
    CHECK_STR(error_reason(ERROR_##name), reason);                                                 \
    CHECK_STR(error_text(ERROR_##name), text);
    ERROR_LIST(X)
#undef X
}

TEST(error_environment_is_the_disk_and_the_memory_and_nothing_else)
{
    int count = 0;
    for (int error = 0; error < ERROR_COUNT; error++) {
        if (error_is_environment((Error)error)) count++;
    }
    CHECK_EQ(count, 4);
    CHECK(error_is_environment(ERROR_STORE_FULL));
    CHECK(error_is_environment(ERROR_OUT_OF_MEMORY));
    CHECK(error_is_environment(ERROR_IO));
    CHECK(error_is_environment(ERROR_CORRUPT));
}

TEST(error_say_returns_its_error_and_writes_the_sentence)
{
    ErrorDetail detail;
    Error error = error_say(&detail, ERROR_TOO_LONG, "title: %d bytes, at most %d", 1025, 1024);
    CHECK_EQ(error, ERROR_TOO_LONG);
    CHECK_STR(detail.text, "title: 1025 bytes, at most 1024");
}

TEST(error_say_without_a_detail_only_returns)
{
    CHECK_EQ(error_say(NULL, ERROR_IO, "%s", "unheard"), ERROR_IO);
}

TEST(error_names_tell_errors_of_one_reason_apart)
{
    CHECK_STR(error_reason(ERROR_IO), error_reason(ERROR_CORRUPT));
    CHECK_STR(error_name(ERROR_IO), "IO");
    CHECK_STR(error_name(ERROR_CORRUPT), "CORRUPT");
    CHECK_STR(error_name(ERROR_CLOSED), "CLOSED");
}

TEST(error_say_errno_translates_and_writes_the_cause)
{
    static const struct {
        int code;
        Error error;
    } ROWS[] = {{ENOSPC, ERROR_STORE_FULL},
                {EDQUOT, ERROR_STORE_FULL},
                {EFBIG, ERROR_STORE_FULL},
                {ENOMEM, ERROR_OUT_OF_MEMORY},
                {EMFILE, ERROR_OUT_OF_MEMORY},
                {ENFILE, ERROR_OUT_OF_MEMORY},
                {EIO, ERROR_IO},
                {EACCES, ERROR_IO}};
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(*ROWS); i++) {
        CHECK_EQ(error_say_errno(NULL, ROWS[i].code, "unheard"), ROWS[i].error);
    }
    ErrorDetail detail;
    CHECK_EQ(error_say_errno(&detail, EIO, "cannot flush %s", "/x"), ERROR_IO);
    CHECK_STR(detail.text, "cannot flush /x: Input/output error (errno 5)");
}

TEST(error_say_may_extend_its_own_detail)
{
    ErrorDetail detail = {"slug"};
    Error error = error_say(&detail, ERROR_INVALID_ARGUMENT, "session.%s", detail.text);
    CHECK_EQ(error, ERROR_INVALID_ARGUMENT);
    CHECK_STR(detail.text, "session.slug");
}

TEST(error_say_keeps_a_sentence_that_just_fits_and_cuts_one_byte_more)
{
    char text[ERROR_DETAIL_BYTES_MAX + 1];
    memset(text, 'x', sizeof text);
    text[ERROR_DETAIL_BYTES_MAX - 1] = '\0';
    ErrorDetail detail;
    CHECK_EQ(error_say(&detail, ERROR_IO, "%s", text), ERROR_IO);
    CHECK_STR(detail.text, text);

    text[ERROR_DETAIL_BYTES_MAX - 1] = 'y';
    text[ERROR_DETAIL_BYTES_MAX] = '\0';
    CHECK_EQ(error_say(&detail, ERROR_IO, "%s", text), ERROR_IO);
    CHECK_EQ(strlen(detail.text), ERROR_DETAIL_BYTES_MAX - 1);
    CHECK(strchr(detail.text, 'y') == NULL);
}

TEST(error_say_cuts_on_a_code_point)
{
    static const char *const CODE_POINTS[] = {"é", "€", "😀"};
    for (size_t i = 0; i < 3; i++) {
        for (size_t padding = 0; padding < 4; padding++) {
            char text[2 * ERROR_DETAIL_BYTES_MAX + 16];
            memset(text, 'x', padding);
            size_t size = padding;
            size_t step = strlen(CODE_POINTS[i]);
            while (size < 2 * ERROR_DETAIL_BYTES_MAX) {
                memcpy(text + size, CODE_POINTS[i], step);
                size += step;
            }
            text[size] = '\0';

            ErrorDetail detail;
            CHECK_EQ(error_say(&detail, ERROR_IO, "%s", text), ERROR_IO);
            size_t kept = strlen(detail.text);
            CHECK(utf8_is_valid(slice_of(detail.text)));
            CHECK_EQ(kept, padding + (ERROR_DETAIL_BYTES_MAX - 1 - padding) / step * step);
            CHECK(memcmp(detail.text, text, kept) == 0);
        }
    }
}

TEST(error_say_never_says_bytes_that_are_not_utf8)
{
    ErrorDetail detail;
    CHECK_EQ(error_say(&detail, ERROR_UNIMPLEMENTED, "method a\xFF\xC3z"), ERROR_UNIMPLEMENTED);
    CHECK_STR(detail.text, "method a??z");
}
