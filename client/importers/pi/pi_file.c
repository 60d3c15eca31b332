// Reading a file line by line. Parents are looked up when all lines are known, because a later line
// may use an ID again. entry_order.h then puts the entries in order.

#include "importers/pi/pi_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "importers/lines_ahead.h"
#include "text/json.h"
#include "text/json_walk.h"

enum {
    ENTRY_COUNT_FIRST = 256,
    ID_MADE_BYTES = 4,
    ID_ARENA_BYTES = 16 * 1024 * 1024,
};

// The state while a file is read.
typedef struct Reading {
    PiFile *pi;
    ErrorDetail *detail;
    size_t line;       // from 1
    uint64_t offset;   // of the line
    bool has_text;     // a line before this one was not blank
    uint32_t parsed;   // lines so far that are JSON
    uint32_t capacity; // of the entries
    Arena arena;       // of one line
    LinesAhead *ahead;
} Reading;

static void note(PiFile *pi, size_t line, const char *what)
{
    if (pi->problem_count < PI_PROBLEMS_MAX) {
        pi->problems[pi->problem_count] = (PiProblem){line, what};
    }
    pi->problem_count++;
}

const char *pi_file_id(const PiFile *pi, uint32_t entry)
{
    return (const char *)pi->texts.bytes + pi->texts.start + pi->entries[entry].id;
}

static Error put_text(PiFile *pi, const char *text, uint32_t *out)
{
    *out = (uint32_t)buffer_size(&pi->texts);
    return buffer_append(&pi->texts, slice(text, strlen(text) + 1));
}

static size_t slot_of(const PiFile *pi, const char *id)
{
    Hash hash = hash_bytes(slice_of(id));
    size_t start;
    memcpy(&start, hash.bytes, sizeof(start));
    for (size_t i = start % pi->slot_count;; i = (i + 1) % pi->slot_count) {
        if (pi->slots[i] == ENTRY_NONE || strcmp(pi_file_id(pi, pi->slots[i]), id) == 0) return i;
    }
}

uint32_t pi_file_find(const PiFile *pi, const char *id)
{
    return pi->slot_count > 0 ? pi->slots[slot_of(pi, id)] : ENTRY_NONE;
}

static Error slots_grow(PiFile *pi)
{
    if ((size_t)pi->count * 2 < pi->slot_count) return ERROR_NONE;
    size_t count = pi->slot_count > 0 ? pi->slot_count * 2 : (size_t)ENTRY_COUNT_FIRST * 4;
    uint32_t *slots = realloc(pi->slots, count * sizeof(*slots));
    if (!slots) return ERROR_OUT_OF_MEMORY;
    memset(slots, 0xff, count * sizeof(*slots));
    pi->slots = slots;
    pi->slot_count = count;
    for (uint32_t i = 0; i < pi->count; i++)
        slots[slot_of(pi, pi_file_id(pi, i))] = i;
    return ERROR_NONE;
}

// Makes an ID of eight digits; of more if that is taken.
Error pi_file_make_id(const PiFile *pi, uint32_t number, Arena *arena, char **out)
{
    char seed[32];
    snprintf(seed, sizeof(seed), "entry %u", number);
    Hash hash = hash_pair(slice_of(pi->id), slice_of(seed));
    char *id = arena_alloc(arena, 2 * HASH_BYTES + 1);
    if (!id) return arena_error(arena);
    for (size_t i = 0; i < HASH_BYTES; i++) {
        snprintf(id + 2 * i, 3, "%02x", hash.bytes[i]);
        if (i + 1 >= ID_MADE_BYTES && pi_file_find(pi, id) == ENTRY_NONE) break;
    }
    *out = id;
    return ERROR_NONE;
}

static Error entries_grow(Reading *reading)
{
    PiFile *pi = reading->pi;
    if (pi->count < reading->capacity) return ERROR_NONE;
    if (pi->count >= PI_ENTRY_COUNT_MAX) {
        return error_say(reading->detail, ERROR_INVALID_ARGUMENT, "too many entries");
    }
    uint32_t capacity = reading->capacity > 0 ? reading->capacity * 2 : ENTRY_COUNT_FIRST;
    PiEntry *entries = realloc(pi->entries, capacity * sizeof(*entries));
    if (!entries) return ERROR_OUT_OF_MEMORY;
    pi->entries = entries;
    reading->capacity = capacity;
    return ERROR_NONE;
}

static Error choose_id(Reading *reading, Slice id, char **out)
{
    PiFile *pi = reading->pi;
    bool has_id = json_is_text(id) && id.size > 2;
    if (pi->count == 0) pi->makes_ids = pi->version < 2 && !has_id;
    if (pi->makes_ids || !has_id) {
        if (!pi->makes_ids) note(pi, reading->line, "an entry without an ID; one is made for it");
        return pi_file_make_id(pi, pi->count, &reading->arena, out);
    }
    *out = json_text(&reading->arena, id);
    return *out ? ERROR_NONE : arena_error(&reading->arena);
}

static Error add_entry(Reading *reading, Slice json, Slice id, Slice parent_id)
{
    PiFile *pi = reading->pi;
    char *id_text = NULL;
    Error error = entries_grow(reading);
    if (!error) error = slots_grow(pi);
    if (!error) error = choose_id(reading, id, &id_text);
    if (error) return error;
    PiEntry *entry = &pi->entries[pi->count];
    *entry = (PiEntry){.offset = reading->offset,
                       .bytes = (uint32_t)json.size,
                       .line = (uint32_t)reading->line,
                       .parsed = reading->parsed,
                       .parent = ENTRY_NONE};
    const char *parent_text = json_text(&reading->arena, parent_id);
    if (!parent_text) return arena_error(&reading->arena);
    error = put_text(pi, id_text, &entry->id);
    if (!error) error = put_text(pi, parent_text, &entry->parent_id);
    if (error) return error;
    size_t slot = slot_of(pi, id_text);
    if (pi->slots[slot] != ENTRY_NONE) {
        pi->entries[pi->slots[slot]].is_shadowed = entry->is_later = true;
        note(pi, reading->line, "its ID was used before; references mean the later entry");
    }
    pi->slots[slot] = pi->count++;
    return ERROR_NONE;
}

static Error take_header(Reading *reading, Slice json, Slice id, Slice version)
{
    PiFile *pi = reading->pi;
    const char *text = json_text(&reading->arena, id);
    pi->header = strndup((const char *)json.bytes, json.size);
    pi->id = text ? strdup(text) : NULL;
    if (!pi->header || !pi->id) return ERROR_OUT_OF_MEMORY;
    pi->header_end = reading->offset + json.size;
    int64_t number = json_integer(version);
    pi->version = number < 1 ? 1 : number > 1000 ? 1000 : (unsigned)number;
    return ERROR_NONE;
}

static Error take_value(Reading *reading, Slice json)
{
    enum { TYPE, ID, PARENT, VERSION, COUNT };
    static const char *const NAMES[] = {"type", "id", "parentId", "version"};
    Slice values[COUNT];
    PiFile *pi = reading->pi;
    Error error = json_members(json, NAMES, COUNT, values, NULL);
    if (error) return error;
    const char *type = json_text(&reading->arena, values[TYPE]);
    if (!type) return arena_error(&reading->arena);
    bool is_header = strcmp(type, "session") == 0;
    if (!pi->header) {
        if (is_header && json_is_text(values[ID]) && values[ID].size > 2) {
            error = take_header(reading, json, values[ID], values[VERSION]);
        } else {
            error = error_say(reading->detail, ERROR_INVALID_ARGUMENT,
                              "line %zu: not a session of pi: its first line must be "
                              "{\"type\":\"session\",\"id\":…}",
                              reading->line);
        }
    } else if (is_header) {
        note(pi, reading->line, "another header; kept, but not an entry");
    } else if (!json_is_object(json)) {
        note(pi, reading->line, "not an object; kept, but not an entry");
    } else {
        error = add_entry(reading, json, values[ID], values[PARENT]);
    }
    reading->parsed++;
    return error;
}

static Error take_line(Reading *reading, Slice line)
{
    bool is_first = !reading->has_text; // the thread ahead does not know which line is first
    Slice json = line_json(line, is_first);
    if (json.size == 0) return ERROR_NONE;
    reading->has_text = true;
    if (json.size > PI_LINE_BYTES_MAX) {
        return error_say(reading->detail, ERROR_INVALID_ARGUMENT,
                         "line %zu has %zu bytes; %d are allowed", reading->line, json.size,
                         PI_LINE_BYTES_MAX);
    }
    bool is_json = is_first ? json_is_well_formed(json)
                            : lines_ahead_is_json(reading->ahead, reading->offset, json);
    if (!is_json) {
        note(reading->pi, reading->line, "not JSON; kept, but not an entry");
        return ERROR_NONE;
    }
    uint64_t start = reading->offset;
    reading->offset += (uint64_t)(json.bytes - line.bytes);
    arena_reset(&reading->arena, ID_ARENA_BYTES);
    Error error = take_value(reading, json);
    reading->offset = start;
    return error;
}

static Error read_lines(Reading *reading)
{
    LineWindow *window = &reading->pi->window;
    Slice line;
    Error error = line_window_line(window, reading->offset, &line);
    while (!error && line.size > 0) {
        reading->line++;
        error = take_line(reading, line);
        reading->offset += line.size;
        if (!error) error = line_window_line(window, reading->offset, &line);
    }
    reading->pi->bytes = reading->offset;
    if (error != ERROR_IO) return error;
    return error_say(reading->detail, ERROR_IO, "cannot be read: %s", strerror(errno));
}

static const char *parent_id_of(const PiFile *pi, uint32_t entry)
{
    return (const char *)pi->texts.bytes + pi->texts.start + pi->entries[entry].parent_id;
}

// pi never shows an entry whose ID is used again later, so any parent will do for it: an earlier
// entry is chosen. That keeps the order of files in which pi has written the whole list twice.
static void resolve_shadowed(PiFile *pi)
{
    memset(pi->slots, 0xff, pi->slot_count * sizeof(*pi->slots));
    for (uint32_t i = 0; i < pi->count; i++) {
        uint32_t parent = ENTRY_NONE;
        if (pi->entries[i].is_shadowed) parent = pi_file_find(pi, parent_id_of(pi, i));
        if (parent != ENTRY_NONE) pi->entries[i].parent = parent;
        pi->slots[slot_of(pi, pi_file_id(pi, i))] = i;
    }
}

static void resolve_parents(PiFile *pi)
{
    bool is_any_shadowed = false;
    for (uint32_t i = 0; i < pi->count; i++) {
        PiEntry *entry = &pi->entries[i];
        const char *parent = parent_id_of(pi, i);
        is_any_shadowed |= entry->is_shadowed;
        if (pi->makes_ids) {
            entry->parent = i > 0 ? i - 1 : ENTRY_NONE;
        } else if (*parent) {
            entry->parent = pi_file_find(pi, parent);
            if (entry->parent == ENTRY_NONE) {
                note(pi, entry->line, "its parent is missing; its history begins with it");
            }
        }
        if (entry->parent == i) {
            note(pi, entry->line, "it is its own parent; its history begins with it");
            entry->parent = ENTRY_NONE;
        }
    }
    if (is_any_shadowed) resolve_shadowed(pi);
}

static Error order_entries(PiFile *pi)
{
    size_t room = pi->count > 0 ? pi->count : 1;
    uint32_t *parents = malloc(room * sizeof(*parents)), cut;
    pi->order = malloc(room * sizeof(*pi->order));
    for (uint32_t i = 0; parents && i < pi->count; i++)
        parents[i] = pi->entries[i].parent;
    Error error = ERROR_OUT_OF_MEMORY;
    if (parents && pi->order) error = entry_order(parents, pi->count, pi->order, &cut);
    for (uint32_t i = 0; !error && i < pi->count; i++)
        pi->entries[i].parent = parents[i];
    free(parents);
    uint32_t least = pi->count;
    for (uint32_t i = pi->count; !error && i-- > 0;) {
        uint32_t entry = pi->order[i];
        pi->entries[entry].is_ahead = entry > least;
        if (entry < least) least = entry;
    }
    if (!error && cut != ENTRY_NONE) {
        note(pi, pi->entries[cut].line,
             "it is among its own ancestors; its history begins with it");
    }
    return error;
}

Error pi_file_open(PiFile *pi, FILE *file, ErrorDetail *detail)
{
    *pi = (PiFile){.file = file, .window.file = fileno(file)};
    Reading reading = {.pi = pi, .detail = detail};
    arena_init(&reading.arena, ID_ARENA_BYTES);
    reading.ahead = calloc(1, sizeof(*reading.ahead));
    if (!reading.ahead) return ERROR_OUT_OF_MEMORY;
    lines_ahead_start(reading.ahead, fileno(file));
    Error error = read_lines(&reading);
    lines_ahead_stop(reading.ahead);
    free(reading.ahead);
    arena_free(&reading.arena);
    if (error) return error;
    if (!pi->header) {
        return error_say(detail, ERROR_INVALID_ARGUMENT, "not a session of pi: no line is JSON");
    }
    resolve_parents(pi);
    return order_entries(pi);
}

void pi_file_close(PiFile *pi)
{
    free(pi->header);
    free(pi->id);
    free(pi->entries);
    free(pi->order);
    free(pi->slots);
    buffer_free(&pi->texts);
    line_window_free(&pi->window);
    *pi = (PiFile){0};
}

static Error stretch(PiFile *pi, uint64_t start, uint64_t end, Slice *out)
{
    size_t size = (size_t)(end - start);
    Slice held;
    Error error = line_window_at(&pi->window, start, size, &held);
    if (error) return error;
    if (held.size < size) return ERROR_IO; // the file has become shorter
    *out = slice(held.bytes, size);
    return ERROR_NONE;
}

Error pi_file_source(PiFile *pi, uint32_t entry, Slice *out)
{
    uint64_t start = entry > 0 ? pi->entries[entry].offset : pi->header_end;
    uint64_t end = entry + 1 < pi->count ? pi->entries[entry + 1].offset : pi->bytes;
    return stretch(pi, start, end, out);
}

Error pi_file_rest(PiFile *pi, Slice *out)
{
    return stretch(pi, pi->header_end, pi->bytes, out);
}

uint32_t pi_file_at_place(const PiFile *pi, int64_t place)
{
    uint32_t low = 0, high = pi->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (pi->entries[middle].parsed < place) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < pi->count && pi->entries[low].parsed == place ? low : ENTRY_NONE;
}

uint32_t pi_file_at_line(const PiFile *pi, unsigned long line)
{
    uint32_t low = 0, high = pi->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (pi->entries[middle].line < line) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < pi->count && pi->entries[low].line == line ? low : ENTRY_NONE;
}
