// Unsafe code points, and columns.

#include "text/display.h"

#include <locale.h>

#include "harness.h"

TEST(display_every_control_is_unsafe_and_other_ascii_is_not)
{
    for (uint32_t i = 0; i < 0xA0; i++) {
        bool is_control = i < 0x20 || i >= 0x7F;
        CHECK_EQ(display_is_unsafe(i), is_control);
    }
}

TEST(display_what_hides_or_turns_text_is_unsafe)
{
    static const uint32_t UNSAFE[] = {
        0xAD,   0x34F,   0x61C,   0x115F,  0x1160,  0x180E,  0x200B,  0x200C,   0x200E,
        0x200F, 0x2028,  0x2029,  0x202A,  0x202E,  0x2060,  0x2066,  0x2069,   0x206F,
        0x3164, 0xE000,  0xF8FF,  0xFDD0,  0xFEFF,  0xFFA0,  0xFFF9,  0xFFFB,   0xFFFE,
        0xFFFF, 0x1FFFE, 0xE0001, 0xE0041, 0xE007F, 0xE0FFF, 0xF0000, 0x10FFFD,
    };
    for (size_t i = 0; i < sizeof(UNSAFE) / sizeof(*UNSAFE); i++) {
        if (!display_is_unsafe(UNSAFE[i])) CHECK_EQ(UNSAFE[i], 0);
    }
}

TEST(display_letters_joiners_and_emoji_are_safe)
{
    static const uint32_t SAFE[] = {
        0xA0,   0xAC,   0xAE,   0xE9,   0x300,  0x5D0,  0x627,  0x200D, 0x2010,  0x2027,  0x202F,
        0x2070, 0x2026, 0x3000, 0x4E00, 0xAC00, 0xFE0F, 0xFFFC, 0xFFFD, 0x1F642, 0x1F3FB, 0x2FA1D,
    };
    for (size_t i = 0; i < sizeof(SAFE) / sizeof(*SAFE); i++) {
        if (display_is_unsafe(SAFE[i])) CHECK_EQ(SAFE[i], 0);
    }
}

TEST(display_columns_are_those_of_the_terminal)
{
    CHECK(setlocale(LC_CTYPE, "C.UTF-8") != NULL);
    CHECK_EQ(display_columns('a'), 1);
    CHECK_EQ(display_columns(0xE9), 1);
    CHECK_EQ(display_columns(0x4E00), 2);
    CHECK_EQ(display_columns(0x1F642), 2);
    CHECK_EQ(display_columns(0x301), 0);
    CHECK_EQ(display_columns(0x1B), 0);
}
