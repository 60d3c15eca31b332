// Arenas: bump allocation in blocks that double in size.
//
// Only the block at the head of the list has free room. A request that is too large for an ordinary
// block gets a block of its own, which goes behind the head so that the head's room is not lost.
// Under AddressSanitizer free room is poisoned, so a use after arena_reset is reported although the
// memory still belongs to the arena.

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_POISONS 1
#endif
#endif

#ifdef ARENA_POISONS
#include <sanitizer/asan_interface.h>
#define POISON(bytes, size) ASAN_POISON_MEMORY_REGION(bytes, size)
#define UNPOISON(bytes, size) ASAN_UNPOISON_MEMORY_REGION(bytes, size)
#else
#define POISON(bytes, size) ((void)0)
#define UNPOISON(bytes, size) ((void)0)
#endif

enum { ARENA_ALIGNMENT = 16 };

struct ArenaBlock {
    ArenaBlock *next;
    size_t capacity;
    size_t used;
    _Alignas(ARENA_ALIGNMENT) uint8_t bytes[];
};

_Static_assert(_Alignof(max_align_t) >= ARENA_ALIGNMENT, "malloc aligns blocks");

static void *allocator_alloc(void *allocator_data, size_t size);
static void allocator_free(void *allocator_data, void *pointer);
static ArenaBlock *block_with_room(Arena *arena, size_t size);
static size_t block_capacity_next(const Arena *arena);

void arena_init(Arena *arena, size_t budget_bytes)
{
    *arena = (Arena){.budget_bytes = budget_bytes};
    arena->allocator = (ProtobufCAllocator){allocator_alloc, allocator_free, arena};
}

void *arena_alloc(Arena *arena, size_t size)
{
    // Zero bytes cost one unit too, so that every result is distinct and no loop is free.
    if (size == 0) size = 1;
    size_t left = arena->budget_bytes - arena->used_bytes;
    if (size > SIZE_MAX - ARENA_ALIGNMENT + 1) {
        arena->is_exhausted = true;
        return NULL;
    }
    size_t taken = (size + ARENA_ALIGNMENT - 1) & ~(size_t)(ARENA_ALIGNMENT - 1);
    if (taken > left) {
        arena->is_exhausted = true;
        return NULL;
    }

    ArenaBlock *block = block_with_room(arena, taken);
    if (!block) {
        arena->is_out_of_memory = true;
        return NULL;
    }
    uint8_t *bytes = block->bytes + block->used;
    block->used += taken;
    arena->used_bytes += taken;
    UNPOISON(bytes, size);
    return bytes;
}

static ArenaBlock *block_with_room(Arena *arena, size_t size)
{
    ArenaBlock *head = arena->blocks;
    if (head && head->capacity - head->used >= size) return head;

    size_t capacity = block_capacity_next(arena);
    bool is_own = size > capacity;
    if (is_own) capacity = size;
    if (capacity > PTRDIFF_MAX - sizeof(ArenaBlock)) return NULL;
    ArenaBlock *block = malloc(sizeof(ArenaBlock) + capacity);
    if (!block) return NULL;
    block->capacity = capacity;
    block->used = 0;
    POISON(block->bytes, capacity);

    ArenaBlock **place = is_own && head ? &head->next : &arena->blocks;
    block->next = *place;
    *place = block;
    return block;
}

// Blocks double up to the size that is still kept over a reset.
static size_t block_capacity_next(const Arena *arena)
{
    if (!arena->blocks) return ARENA_BLOCK_BYTES_MIN;
    size_t capacity = arena->blocks->capacity;
    if (capacity >= ARENA_KEEP_BYTES_MAX / 2) return ARENA_KEEP_BYTES_MAX;
    return capacity * 2 > ARENA_BLOCK_BYTES_MIN ? capacity * 2 : ARENA_BLOCK_BYTES_MIN;
}

void arena_reset(Arena *arena, size_t budget_bytes)
{
    ArenaBlock *kept = NULL;
    for (ArenaBlock *block = arena->blocks; block;) {
        ArenaBlock *next = block->next;
        bool is_kept = block->capacity <= ARENA_KEEP_BYTES_MAX;
        if (is_kept && kept && arena->keeps_largest) is_kept = block->capacity > kept->capacity;
        if (is_kept) free(kept);
        if (is_kept)
            kept = block;
        else
            free(block);
        block = next;
    }
    if (kept) {
        kept->next = NULL;
        kept->used = 0;
        POISON(kept->bytes, kept->capacity);
    }
    arena->blocks = kept;
    arena->budget_bytes = budget_bytes;
    arena->used_bytes = 0;
    arena->is_exhausted = arena->is_out_of_memory = false;
}

void arena_free(Arena *arena)
{
    for (ArenaBlock *block = arena->blocks; block;) {
        ArenaBlock *next = block->next;
        free(block);
        block = next;
    }
    arena->blocks = NULL;
    arena->used_bytes = 0;
    arena->is_exhausted = arena->is_out_of_memory = false;
}

Arena *arena_of_allocator(const ProtobufCAllocator *allocator)
{
    return allocator && allocator->alloc == allocator_alloc ? allocator->allocator_data : NULL;
}

void *arena_zalloc(Arena *arena, size_t size)
{
    void *bytes = arena_alloc(arena, size);
    if (bytes) memset(bytes, 0, size);
    return bytes;
}

void *arena_zalloc_array(Arena *arena, size_t size, size_t count)
{
    size_t total;
    if (__builtin_mul_overflow(size, count, &total)) {
        arena->is_exhausted = true; // more than any budget
        return NULL;
    }
    return arena_zalloc(arena, total);
}

char *arena_string(Arena *arena, Slice text)
{
    if (text.size == SIZE_MAX) {
        arena->is_exhausted = true;
        return NULL;
    }
    char *copy = arena_alloc(arena, text.size + 1);
    if (!copy) return NULL;
    if (text.size > 0) memcpy(copy, text.bytes, text.size);
    copy[text.size] = '\0';
    return copy;
}

Error arena_copy(Arena *arena, Slice bytes, Slice *out)
{
    uint8_t *copy = arena_alloc(arena, bytes.size);
    if (!copy) return arena_error(arena);
    if (bytes.size > 0) memcpy(copy, bytes.bytes, bytes.size);
    *out = slice(copy, bytes.size);
    return ERROR_NONE;
}

Error arena_error(const Arena *arena)
{
    return arena->is_exhausted ? ERROR_TOO_LONG : ERROR_OUT_OF_MEMORY;
}

static void *allocator_alloc(void *allocator_data, size_t size)
{
    return arena_alloc(allocator_data, size);
}

static void allocator_free(void *allocator_data, void *pointer)
{
    (void)allocator_data;
    (void)pointer;
}
