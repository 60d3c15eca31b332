// Arenas: alignment, the budget to the byte, and what a reset keeps.

#include "base/arena.h"

#include <protobuf-c/protobuf-c.h>
#include <string.h>

#include "base/limits.h"
#include "harness.h"
#include "os/random.h"

enum { BUDGET = 8 * 1024 * 1024 };

static Arena *arena_with_budget(Arena *arena, size_t budget_bytes)
{
    arena_init(arena, budget_bytes);
    return arena;
}

TEST(arena_allocates_nothing_before_it_is_asked)
{
    CLEANUP(arena_free) Arena arena;
    arena_init(&arena, BUDGET);
    CHECK(arena.blocks == NULL);
    CHECK_EQ(arena.used_bytes, 0);
    CHECK(!arena.is_exhausted);
}

static void *alloc_of_nobody(void *data, size_t size)
{
    (void)data;
    (void)size;
    return NULL;
}

TEST(an_allocator_is_of_its_arena_or_of_none)
{
    CLEANUP(arena_free) Arena arena;
    arena_init(&arena, BUDGET);
    ProtobufCAllocator copy = arena.allocator;
    ProtobufCAllocator other = {alloc_of_nobody, arena.allocator.free, &arena};
    CHECK(arena_of_allocator(&arena.allocator) == &arena);
    CHECK(arena_of_allocator(&copy) == &arena);
    CHECK(arena_of_allocator(&other) == NULL);
    CHECK(arena_of_allocator(NULL) == NULL);
}

TEST(arena_results_are_aligned_to_16_and_apart)
{
    CLEANUP(arena_free) Arena arena;
    arena_init(&arena, BUDGET);
    uint8_t *last = NULL;
    for (size_t size = 0; size < 200; size++) {
        uint8_t *bytes = arena_alloc(&arena, size);
        CHECK(bytes != NULL);
        CHECK_EQ((uintptr_t)bytes % 16, 0);
        CHECK(bytes != last);
        memset(bytes, 0xAB, size);
        last = bytes;
    }
}

TEST(arena_budget_counts_bytes_rounded_up_to_16)
{
    static const struct {
        size_t size;
        size_t taken;
    } CASES[] = {{0, 16}, {1, 16}, {15, 16}, {16, 16}, {17, 32}, {32, 32}, {33, 48}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        CLEANUP(arena_free) Arena arena;
        arena_init(&arena, BUDGET);
        CHECK(arena_alloc(&arena, CASES[i].size) != NULL);
        CHECK_EQ(arena.used_bytes, CASES[i].taken);
    }
}

TEST(arena_gives_its_whole_budget_and_not_a_unit_more)
{
    CLEANUP(arena_free) Arena arena;
    arena_init(&arena, 64);
    CHECK(arena_alloc(&arena, 48) != NULL);
    CHECK(arena_alloc(&arena, 17) == NULL);
    CHECK(arena.is_exhausted);
    CHECK_EQ(arena_error(&arena), ERROR_TOO_LONG);
    CHECK_EQ(arena.used_bytes, 48);
    CHECK(arena_alloc(&arena, 16) != NULL);
    CHECK(arena_alloc(&arena, 0) == NULL);
}

TEST(arena_refuses_sizes_that_overflow)
{
    CLEANUP(arena_free) Arena arena;
    arena_init(&arena, SIZE_MAX);
    CHECK(arena_alloc(&arena, SIZE_MAX) == NULL);
    CHECK(arena_alloc(&arena, SIZE_MAX - 14) == NULL);
    CHECK(arena_zalloc_array(&arena, SIZE_MAX / 2, 3) == NULL);
    CHECK(arena_string(&arena, slice("", SIZE_MAX)) == NULL);
    CHECK_EQ(arena.used_bytes, 0);
    CHECK_EQ(arena_error(&arena), ERROR_TOO_LONG);
}

TEST(arena_tells_a_failed_malloc_from_the_budget)
{
    CLEANUP(arena_free) Arena arena;
    arena_init(&arena, SIZE_MAX);
    CHECK(arena_alloc(&arena, SIZE_MAX - 63) == NULL);
    CHECK(!arena.is_exhausted);
    CHECK_EQ(arena_error(&arena), ERROR_OUT_OF_MEMORY);
    CHECK_EQ(arena.used_bytes, 0);
}

TEST(arena_budget_holds_across_blocks)
{
    CLEANUP(arena_free) Arena arena;
    arena_init(&arena, 256 * 1024);
    size_t count = 0;
    while (arena_alloc(&arena, 1000))
        count++;
    CHECK_EQ(count, 256 * 1024 / 1008);
    CHECK(arena.used_bytes <= arena.budget_bytes);
}

TEST(arena_contents_survive_later_allocations)
{
    CLEANUP(arena_free) Arena arena;
    arena_init(&arena, 64 * 1024 * 1024);
    Random random;
    random_seed(&random, test_seed());
    enum { COUNT = 500 };
    uint8_t *bytes[COUNT];
    size_t sizes[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        bool is_large = random_below(&random, 20) == 0;
        sizes[i] = (size_t)random_below(&random, is_large ? 300000 : 500);
        bytes[i] = arena_alloc(&arena, sizes[i]);
        CHECK(bytes[i] != NULL);
        memset(bytes[i], (int)(i & 0xFF), sizes[i]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t k = 0; k < sizes[i]; k++) {
            if (bytes[i][k] != (uint8_t)i) CHECK_EQ(bytes[i][k], i & 0xFF);
        }
    }
}

TEST(arena_large_request_does_not_waste_the_current_block)
{
    CLEANUP(arena_free) Arena arena;
    arena_init(&arena, BUDGET);
    uint8_t *first = arena_alloc(&arena, 16);
    CHECK(arena_alloc(&arena, 100 * ARENA_BLOCK_BYTES_MIN) != NULL);
    uint8_t *second = arena_alloc(&arena, 16);
    CHECK(second == first + 16);
}

TEST(arena_reset_reuses_the_same_block)
{
    CLEANUP(arena_free) Arena arena;
    arena_init(&arena, BUDGET);
    void *before = arena_alloc(&arena, 100);
    ArenaBlock *block = arena.blocks;
    arena_reset(&arena, BUDGET);
    CHECK(arena.blocks == block);
    CHECK_EQ(arena.used_bytes, 0);
    CHECK(arena_alloc(&arena, ARENA_BLOCK_BYTES_MIN) == before);
}

TEST(arena_reset_keeps_one_block_of_many)
{
    CLEANUP(arena_free) Arena arena;
    arena_init(&arena, BUDGET);
    void *first = arena_alloc(&arena, 100);
    while (arena.used_bytes < BUDGET / 2)
        CHECK(arena_alloc(&arena, 5000) != NULL);
    arena_reset(&arena, BUDGET);
    CHECK(arena_alloc(&arena, 100) == first);
    ArenaBlock *kept = arena.blocks;
    CHECK(arena_alloc(&arena, ARENA_BLOCK_BYTES_MIN) != NULL);
    CHECK(arena.blocks != kept);
}

TEST(arena_reset_keeps_a_block_at_the_limit_and_frees_one_past_it)
{
    CLEANUP(arena_free) Arena arena;
    arena_init(&arena, BUDGET);
    CHECK(arena_alloc(&arena, ARENA_KEEP_BYTES_MAX) != NULL);
    arena_reset(&arena, BUDGET);
    CHECK(arena.blocks != NULL);
    arena_free(&arena);

    CHECK(arena_alloc(&arena, ARENA_KEEP_BYTES_MAX + 1) != NULL);
    arena_reset(&arena, BUDGET);
    CHECK(arena.blocks == NULL);
}

TEST(arena_reset_keeps_a_small_block_next_to_a_huge_one)
{
    CLEANUP(arena_free) Arena arena;
    arena_init(&arena, BUDGET);
    void *first = arena_alloc(&arena, 100);
    CHECK(arena_alloc(&arena, ARENA_KEEP_BYTES_MAX + 1) != NULL);
    arena_reset(&arena, BUDGET);
    CHECK(arena_alloc(&arena, 100) == first);
}

TEST(arena_reset_changes_the_budget_and_forgets_exhaustion)
{
    CLEANUP(arena_free) Arena arena;
    arena_init(&arena, 16);
    CHECK(arena_alloc(&arena, 17) == NULL);
    arena_reset(&arena, 32);
    CHECK(!arena.is_exhausted);
    CHECK(arena_alloc(&arena, 32) != NULL);
    arena_reset(&arena, 0);
    CHECK(arena_alloc(&arena, 1) == NULL);
}

TEST(arena_is_usable_again_after_free)
{
    CLEANUP(arena_free) Arena arena;
    arena_init(&arena, 64);
    CHECK(arena_alloc(&arena, 64) != NULL);
    arena_free(&arena);
    arena_free(&arena);
    CHECK(arena_alloc(&arena, 64) != NULL);
}

TEST(arena_zalloc_is_zeroed_in_reused_memory)
{
    CLEANUP(arena_free) Arena arena;
    arena_init(&arena, BUDGET);
    memset(arena_alloc(&arena, 4096), 0xFF, 4096);
    arena_reset(&arena, BUDGET);
    uint8_t *bytes = arena_zalloc(&arena, 4096);
    for (size_t i = 0; i < 4096; i++) {
        if (bytes[i] != 0) CHECK_EQ(bytes[i], 0);
    }

    arena_reset(&arena, BUDGET);
    uint64_t *numbers = arena_array(&arena, uint64_t, 512);
    for (size_t i = 0; i < 512; i++) {
        if (numbers[i] != 0) CHECK_EQ(numbers[i], 0);
    }
    Slice *one = arena_new(&arena, Slice);
    CHECK(one->bytes == NULL);
}

TEST(arena_string_is_a_copy_with_a_nul)
{
    CLEANUP(arena_free) Arena arena;
    char source[] = "abcdef";
    char *copy = arena_string(arena_with_budget(&arena, 32), slice(source, 3));
    source[0] = 'X';
    CHECK_STR(copy, "abc");
    CHECK_STR(arena_string(&arena, slice_of(NULL)), "");
    CHECK(arena_string(&arena, slice_of("past the budget")) == NULL);
}

TEST(arena_string_counts_its_nul)
{
    CLEANUP(arena_free) Arena arena;
    CHECK(arena_string(arena_with_budget(&arena, 16), slice_of("fifteen bytes..")) != NULL);
    arena_reset(&arena, 16);
    CHECK(arena_string(&arena, slice_of("sixteen bytes...")) == NULL);
}

TEST(arena_copy_copies_and_leaves_its_output_alone_past_the_budget)
{
    CLEANUP(arena_free) Arena arena;
    arena_init(&arena, 32);
    char source[] = "bytes";
    Slice out;
    CHECK_EQ(arena_copy(&arena, slice_of(source), &out), ERROR_NONE);
    source[0] = 'X';
    CHECK(slice_equal(out, slice_of("bytes")));

    Slice untouched = out;
    CHECK_EQ(arena_copy(&arena, slice("0123456789abcdefg", 17), &out), ERROR_TOO_LONG);
    CHECK(out.bytes == untouched.bytes && out.size == untouched.size);

    CHECK_EQ(arena_copy(&arena, (Slice){0}, &out), ERROR_NONE);
    CHECK_EQ(out.size, 0);
}

TEST(arena_allocator_serves_protobuf_c_within_the_budget)
{
    CLEANUP(arena_free) Arena arena;
    arena_init(&arena, 32);
    ProtobufCAllocator *allocator = &arena.allocator;
    void *bytes = allocator->alloc(allocator->allocator_data, 32);
    CHECK(bytes != NULL);
    allocator->free(allocator->allocator_data, bytes);
    CHECK_EQ(arena.used_bytes, 32);
    CHECK(allocator->alloc(allocator->allocator_data, 1) == NULL);
    CHECK(arena.is_exhausted);
}
