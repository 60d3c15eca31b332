// The scanner of JSON tokens.

#include "text/json_scan.h"

char json_scan_peek(JsonScan *scan)
{
    scan->at = json_skip_space(scan->text, scan->at);
    return scan->at < scan->text.size ? (char)scan->text.bytes[scan->at] : '\0';
}

bool json_scan_take(JsonScan *scan, char expected)
{
    if (json_scan_peek(scan) != expected || scan->at >= scan->text.size) return false;
    scan->at++;
    return true;
}

static bool is_word_byte(uint8_t byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_' ||
           (byte >= '0' && byte <= '9');
}

bool json_scan_take_word(JsonScan *scan, const char *word)
{
    (void)json_scan_peek(scan);
    Slice rest = slice_skip(scan->text, scan->at), wanted = slice_of(word);
    if (!slice_starts_with(rest, wanted)) return false;
    if (rest.size > wanted.size && is_word_byte(rest.bytes[wanted.size])) return false;
    scan->at += wanted.size;
    return true;
}

static bool is_number_byte(uint8_t byte)
{
    return (byte >= '0' && byte <= '9') || byte == '-' || byte == '+' || byte == '.' ||
           byte == 'e' || byte == 'E';
}

bool json_scan_number(JsonScan *scan, Slice *out)
{
    char first = json_scan_peek(scan);
    if (first != '-' && (first < '0' || first > '9')) return false;
    size_t start = scan->at;
    while (scan->at < scan->text.size && is_number_byte(scan->text.bytes[scan->at]))
        scan->at++;
    *out = slice(scan->text.bytes + start, scan->at - start);
    return true;
}

JsonFault json_scan_string(JsonScan *scan, Slice *out_inside, size_t *out_fault_at)
{
    size_t end = 0;
    JsonFault fault = json_string_end(scan->text, scan->at, &end);
    if (fault) {
        *out_fault_at = end;
        return fault;
    }
    *out_inside = slice(scan->text.bytes + scan->at + 1, end - scan->at - 2);
    scan->at = end;
    return JSON_FAULT_NONE;
}
