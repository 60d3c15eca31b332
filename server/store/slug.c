// Slugs. Characters outside of ASCII are kept, so a title in any script has a slug.

#include "store/slug.h"

#include "base/limits.h"
#include "text/utf8.h"

enum { SUFFIX_BYTES_MAX = 8, FOLD_FACTOR = 3 };

static bool is_kept(uint8_t byte)
{
    return byte >= 0x80 || (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9');
}

Error slug_of_title(Arena *arena, const char *title, char **out)
{
    Slice text = slice_of(title);
    uint8_t *bytes = arena_alloc(arena, FOLD_FACTOR * text.size + 1);
    if (!bytes) return arena_error(arena);
    size_t folded = utf8_fold(text, bytes, FOLD_FACTOR * text.size), size = 0;
    if (folded == SIZE_MAX) return ERROR_TOO_LONG;
    for (size_t i = 0; i < folded; i++) {
        if (is_kept(bytes[i])) {
            bytes[size++] = bytes[i];
        } else if (size > 0 && bytes[size - 1] != '-') {
            bytes[size++] = '-';
        }
    }
    Slice slug = utf8_cut(slice(bytes, size), SLUG_BYTES_MAX - SUFFIX_BYTES_MAX);
    while (slug.size > 0 && slug.bytes[slug.size - 1] == '-')
        slug.size--;
    *out = arena_string(arena, slug.size ? slug : slice_of("session"));
    return *out ? ERROR_NONE : arena_error(arena);
}
