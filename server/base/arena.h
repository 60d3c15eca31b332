// Arenas: memory that is freed all at once, with a budget in bytes.
//
// A call's decoded request and everything that its handler builds are in one arena, which is reset
// when the call has been answered. Nothing in it is freed on its own. The budget limits what a
// hostile request can make the server allocate: beyond it, allocation returns NULL.

#pragma once

#include <protobuf-c/protobuf-c.h>

#include "base/error.h"
#include "base/slice.h"

typedef struct ArenaBlock ArenaBlock;

typedef struct Arena {
    ArenaBlock *blocks;    // newest first; one is kept over a reset
    size_t budget_bytes;   // that may be allocated until the next reset
    size_t used_bytes;     // allocated since the last reset, with alignment
    bool is_exhausted;     // the budget refused an allocation …
    bool is_out_of_memory; // … or malloc did
    bool keeps_largest;    // a reset keeps the largest block, not the oldest; for busy arenas
    ProtobufCAllocator allocator; // decodes protobuf-c messages into this arena
} Arena;

// Makes an empty arena; allocates nothing. The arena must not be moved from here on, because its
// `allocator` points to it. The caller frees it with arena_free.
void arena_init(Arena *arena, size_t budget_bytes);

// Empties the arena and sets its budget. Keeps one block for the next use, but none larger than
// ARENA_KEEP_BYTES_MAX.
void arena_reset(Arena *arena, size_t budget_bytes);

void arena_free(Arena *arena);

// Returns the arena that an allocator belongs to, NULL if it belongs to none.
Arena *arena_of_allocator(const ProtobufCAllocator *allocator);

// Allocates memory, aligned to 16 bytes and not zeroed. Returns NULL beyond the budget or if malloc
// fails.
void *arena_alloc(Arena *arena, size_t size);

// The same, zeroed.
void *arena_zalloc(Arena *arena, size_t size);

#define arena_new(arena, Type) ((Type *)arena_zalloc((arena), sizeof(Type)))
#define arena_array(arena, Type, count) ((Type *)arena_zalloc_array((arena), sizeof(Type), (count)))
void *arena_zalloc_array(Arena *arena, size_t size, size_t count);

// Returns a copy of `text` that ends with a NUL; NULL as arena_alloc.
char *arena_string(Arena *arena, Slice text);

// Copies `bytes` and sets `*out` to the copy. Errors as arena_error.
MUST_USE Error arena_copy(Arena *arena, Slice bytes, Slice *out);

// Returns why an allocation failed: ERROR_TOO_LONG (the budget) or ERROR_OUT_OF_MEMORY (malloc).
Error arena_error(const Arena *arena);
