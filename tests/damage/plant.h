// Plants damage in a file, each time another one, which its seed repeats.

#pragma once

#include <stddef.h>
#include <stdint.h>

// X(constant, count in a full run, name)
#define PLANT_KINDS(X)                                                                             \
    X(BIT, 1000, "random bit flips")                                                               \
    X(HEADER_BIT, 500, "bit flips in page headers")                                                \
    X(ZERO_PAGE, 200, "zeroed pages")                                                              \
    X(SECTOR, 200, "random sectors")                                                               \
    X(OTHER_PAGE, 100, "pages with another's content")                                             \
    X(CUT, 200, "truncations")

typedef enum PlantKind {
#define X(constant, count, name) PLANT_##constant,
    PLANT_KINDS(X)
#undef X
        PLANT_KIND_COUNT,
} PlantKind;

// Damages `bytes`. Returns the size that the file has now.
size_t plant(PlantKind kind, uint64_t seed, uint8_t *bytes, size_t size);
