// The tokens of a JSON text that may be malformed, one by one: for readers that say what is wrong
// and where. What is well-formed is quicker to look at with json_walk.h.

#pragma once

#include "text/json_string.h"

typedef struct JsonScan {
    Slice text;
    size_t at; // the next byte
} JsonScan;

// The first byte at or after `at` that is not white space, or the text's end.
static inline size_t json_skip_space(Slice text, size_t at)
{
    while (at < text.size) {
        uint8_t byte = text.bytes[at];
        if (byte != ' ' && byte != '\t' && byte != '\n' && byte != '\r') break;
        at++;
    }
    return at;
}

// Skips white space and returns the next byte without taking it; 0 at the end.
char json_scan_peek(JsonScan *scan);

// Takes this byte if it is the next token.
bool json_scan_take(JsonScan *scan, char expected);

// Takes a whole word like "null" if it is the next token.
bool json_scan_take_word(JsonScan *scan, const char *word);

// Takes the characters of a number, or of what looks like one: the caller checks its form. False if
// the next token does not begin like a number.
bool json_scan_number(JsonScan *scan, Slice *out);

// Takes the string whose opening quote is next; `out_inside` is what is between its quotes. On a
// fault (those of json_string_end) nothing is taken and `out_fault_at` is where it is.
JsonFault json_scan_string(JsonScan *scan, Slice *out_inside, size_t *out_fault_at);
