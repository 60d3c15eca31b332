// The heap. The end of a heap is given back only when a block beside it is freed and it is longer
// than a threshold. By default that threshold grows to twice the largest block seen, and blocks in
// fast bins join the end only within malloc_trim.

#include "os/heap.h"

#include <malloc.h>

enum { HEAP_END_BYTES_MAX = 1024 * 1024, MAPPED_BYTES_MIN = 4 * 1024 * 1024 };

void heap_bound(void)
{
    (void)mallopt(M_TRIM_THRESHOLD, HEAP_END_BYTES_MAX);
    (void)mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES_MIN);
    (void)mallopt(M_MXFAST, 0);
}
