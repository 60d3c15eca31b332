// The list is sorted and is searched by halves.

#include "text/display.h"

#include <wchar.h>

typedef struct Range {
    uint32_t first, last;
} Range;

static const Range UNSAFE[] = {
    {0x0000, 0x001F},    // C0 controls
    {0x007F, 0x009F},    // delete, C1 controls
    {0x00AD, 0x00AD},    // soft hyphen
    {0x034F, 0x034F},    // combining grapheme joiner
    {0x061C, 0x061C},    // Arabic letter mark
    {0x115F, 0x1160},    // Hangul fillers
    {0x17B4, 0x17B5},    // Khmer vowels that are not shown
    {0x180E, 0x180E},    // Mongolian vowel separator
    {0x200B, 0x200C},    // zero width space and non-joiner; 200D joins emoji
    {0x200E, 0x200F},    // direction marks
    {0x2028, 0x202E},    // line and paragraph separator, direction embeddings and overrides
    {0x2060, 0x206F},    // word joiner, invisible operators, direction isolates
    {0x3164, 0x3164},    // Hangul filler
    {0xE000, 0xF8FF},    // private use
    {0xFDD0, 0xFDEF},    // noncharacters
    {0xFEFF, 0xFEFF},    // byte order mark
    {0xFFA0, 0xFFA0},    // halfwidth Hangul filler
    {0xFFF0, 0xFFFB},    // unassigned and ignored, interlinear annotation
    {0x1BCA0, 0x1BCA3},  // shorthand format controls
    {0x1D173, 0x1D17A},  // musical format controls
    {0xE0000, 0xE0FFF},  // tags, variation selectors supplement
    {0xF0000, 0x10FFFF}, // private use
};

bool display_is_unsafe(uint32_t code_point)
{
    if (code_point >= ' ' && code_point < 0x7F) return false;
    if ((code_point & 0xFFFE) == 0xFFFE) return true; // two noncharacters in each plane
    size_t first = 0, count = sizeof(UNSAFE) / sizeof(*UNSAFE);
    while (count > 0) {
        size_t half = count / 2;
        const Range *range = &UNSAFE[first + half];
        if (code_point >= range->first && code_point <= range->last) return true;
        if (code_point > range->last) {
            first += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return false;
}

size_t display_columns(uint32_t code_point)
{
    if (code_point >= ' ' && code_point < 0x7F) return 1;
    int columns = wcwidth((wchar_t)code_point);
    return columns > 0 ? (size_t)columns : 0;
}
