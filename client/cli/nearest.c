// Damerau-Levenshtein distance: two exchanged neighbours count as one error.

#include "nearest.h"

#include <stdint.h>
#include <string.h>

enum { NAME_BYTES_MAX = 32 };

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

static size_t distance_of(const char *a, const char *b)
{
    size_t a_size = strlen(a), b_size = strlen(b);
    if (a_size > NAME_BYTES_MAX || b_size > NAME_BYTES_MAX) return SIZE_MAX;
    size_t rows[NAME_BYTES_MAX + 1][NAME_BYTES_MAX + 1];
    for (size_t i = 0; i <= a_size; i++) {
        for (size_t j = 0; j <= b_size; j++) {
            if (i == 0 || j == 0) {
                rows[i][j] = i + j;
                continue;
            }
            size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
            rows[i][j] = min3(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + change);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                rows[i - 2][j - 2] + 1 < rows[i][j]) {
                rows[i][j] = rows[i - 2][j - 2] + 1;
            }
        }
    }
    return rows[a_size][b_size];
}

Nearest nearest_begin(const char *wanted)
{
    return (Nearest){.wanted = wanted, .distance = strlen(wanted) / 3 + 2};
}

// A name is near if less than a third of the letters differ, or if it begins with the wanted one.
void nearest_consider(Nearest *nearest, const char *name)
{
    size_t distance = distance_of(nearest->wanted, name), size = strlen(nearest->wanted);
    if (size >= 3 && strncmp(nearest->wanted, name, size) == 0) distance = 0;
    if (distance >= nearest->distance) return;
    nearest->distance = distance;
    nearest->name = name;
}
