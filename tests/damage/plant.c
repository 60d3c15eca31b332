// Plants damage.

#include "plant.h"

#include <string.h>

#include "os/random.h"

enum { PAGE = 4096, SECTOR = 512, HEADER = 16 };

size_t plant(PlantKind kind, uint64_t seed, uint8_t *bytes, size_t size)
{
    Random random;
    random_seed(&random, seed);
    size_t pages = size / PAGE;
    uint8_t *page = bytes + random_below(&random, pages) * PAGE;
    uint64_t choice = random_next(&random);
    uint8_t bit = (uint8_t)(1 << choice % 8);
    switch (kind) {
    case PLANT_BIT: bytes[(choice >> 8) % size] ^= bit; break;
    case PLANT_HEADER_BIT: page[(choice >> 8) % HEADER] ^= bit; break;
    case PLANT_ZERO_PAGE: memset(page, 0, PAGE); break;
    case PLANT_SECTOR:
        random_fill(&random, page + choice % (PAGE / SECTOR) * SECTOR, SECTOR);
        break;
    case PLANT_OTHER_PAGE: memmove(page, bytes + choice % pages * PAGE, PAGE); break;
    case PLANT_CUT: return (size_t)(choice % size);
    case PLANT_KIND_COUNT: break;
    }
    return size;
}
