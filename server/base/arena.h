// Arenas: memory that is freed at once, with a budget in bytes.
//
// A call's request, its decoded messages and what its handler builds live in one arena, which is
// reset when the call has been answered. Nothing in it is freed singly. The budget bounds what a
// hostile request can make the server allocate: past it, allocation returns NULL.

#pragma once

#include <protobuf-c/protobuf-c.h>

#include "base/error.h"
#include "base/slice.h"

typedef struct ArenaBlock ArenaBlock;

typedef struct Arena {
    ArenaBlock *blocks;           // newest first; one is kept over a reset
    size_t budget_bytes;          // what may be handed out in all
    size_t used_bytes;            // handed out since the last reset, alignment included
    bool is_exhausted;            // the budget refused an allocation …
    bool is_out_of_memory;        // … or malloc did
    bool keeps_largest;           // over a reset, instead of the oldest: for few and busy arenas
    ProtobufCAllocator allocator; // decodes protobuf-c messages into this arena
} Arena;

// `budget_bytes` may be changed by arena_reset. Allocates nothing yet. The arena must stay where it
// is from here on: its `allocator` points back at it.
void arena_init(Arena *arena, size_t budget_bytes);

// Forgets everything, keeps one block for the next use (those over ARENA_KEEP_BYTES_MAX are freed).
void arena_reset(Arena *arena, size_t budget_bytes);

void arena_free(Arena *arena);

// The arena that an allocator is of; NULL: of none.
Arena *arena_of_allocator(const ProtobufCAllocator *allocator);

// 16-byte aligned, not zeroed. NULL past the budget or when malloc fails.
void *arena_alloc(Arena *arena, size_t size);

// The same, zeroed.
void *arena_zalloc(Arena *arena, size_t size);

#define arena_new(arena, Type) ((Type *)arena_zalloc((arena), sizeof(Type)))
#define arena_array(arena, Type, count) ((Type *)arena_zalloc_array((arena), sizeof(Type), (count)))
void *arena_zalloc_array(Arena *arena, size_t size, size_t count);

// A NUL-terminated copy. NULL past the budget.
char *arena_string(Arena *arena, Slice text);

// A copy of the bytes in `out`. Fails as arena_error says.
MUST_USE Error arena_copy(Arena *arena, Slice bytes, Slice *out);

// ERROR_TOO_LONG when the budget refused an allocation, ERROR_OUT_OF_MEMORY when malloc did.
Error arena_error(const Arena *arena);
