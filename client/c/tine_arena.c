// The public arena: a base/arena without a budget that keeps its largest block.

#include <stdlib.h>

#include "base/arena.h"
#include "tine.h"

struct TineArena {
    Arena arena;
};

TineArena *tine_arena_open(void)
{
    TineArena *arena = malloc(sizeof(TineArena));
    if (!arena) return NULL;
    arena_init(&arena->arena, SIZE_MAX);
    arena->arena.keeps_largest = true;
    return arena;
}

ProtobufCAllocator *tine_arena_allocator(TineArena *arena)
{
    return &arena->arena.allocator;
}

void tine_arena_reset(TineArena *arena)
{
    arena_reset(&arena->arena, SIZE_MAX);
}

void tine_arena_close(TineArena *arena)
{
    if (!arena) return;
    arena_free(&arena->arena);
    free(arena);
}
