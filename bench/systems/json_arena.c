// An arena for cJSON.
//
// Each thread has a chain of blocks, the newest first. Parsing takes from the newest and adds one
// of twice the size when it is full; the next text begins with the newest alone. So a thread that
// parses texts of one kind soon has one block that holds any of them, and allocates nothing.

#include "json_arena.h"

#include <pthread.h>
#include <stdlib.h>

#include "bench.h"

enum { BLOCK_BYTES_MIN = 64 << 10, ALIGNMENT = 16 };

typedef struct Block {
    struct Block *older;
    size_t size, used;
    _Alignas(ALIGNMENT) unsigned char bytes[];
} Block;

static pthread_key_t blocks_key; // of the newest block; frees them when the thread ends
static _Thread_local Block *newest;

static void free_blocks(void *block)
{
    for (Block *older; block; block = older) {
        older = ((Block *)block)->older;
        free(block);
    }
}

static void add_block(size_t size)
{
    size_t bytes = newest ? 2 * newest->size : BLOCK_BYTES_MIN;
    while (bytes < size)
        bytes *= 2;
    Block *block = malloc(sizeof(Block) + bytes);
    require(block != NULL, "out of memory");
    *block = (Block){.older = newest, .size = bytes};
    newest = block;
    pthread_setspecific(blocks_key, newest);
}

static void *arena_take(size_t size)
{
    size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (!newest || newest->size - newest->used < size) add_block(size);
    void *taken = newest->bytes + newest->used;
    newest->used += size;
    return taken;
}

static void arena_keep(void *taken)
{
    (void)taken; // until the next text
}

static void arena_begin(void)
{
    if (!newest) return;
    free_blocks(newest->older);
    newest->older = NULL;
    newest->used = 0;
}

static void use_arena(void)
{
    require(pthread_key_create(&blocks_key, free_blocks) == 0, "no key for a thread's memory");
    cJSON_InitHooks(&(cJSON_Hooks){arena_take, arena_keep});
}

const cJSON *json_arena_parse(const char *text, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, use_arena);
    arena_begin();
    return cJSON_ParseWithLength(text, size);
}
