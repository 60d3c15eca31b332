// The page walk finds each damage that is planted in a file.

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "page_walk_steps.h"

TEST(meta_pages_that_cannot_be_right_are_found)
{
    make_store();
    int file = open_file();
    uint64_t index;
    LmdbMetaPage meta = read_meta(file, &index);
    for (size_t at = offsetof(LmdbMetaPage, magic); at < offsetof(LmdbMetaPage, address); at++) {
        LmdbMetaPage bad = meta;
        ((uint8_t *)&bad)[at] ^= 4;
        write_meta(file, &bad, index);
        check_found("it is not a meta page of LMDB 0.9");
    }
    LmdbMetaPage bad = meta;
    bad.trees[LMDB_FREE_LIST].pad ^= 64;
    write_meta(file, &bad, index);
    check_found("it says that pages have");
    bad = meta;
    bad.txn_id += 2;
    write_meta(file, &bad, index);
    check_found("does not follow that of page");
    bad = meta;
    bad.txn_id -= 1;
    write_meta(file, &bad, index);
    check_found("does not follow that of page");
    bad = meta;
    bad.last_page = UINT64_MAX;
    write_meta(file, &bad, index);
    check_found("it says that the last page is");
    bad = meta;
    bad.last_page += 1;
    write_meta(file, &bad, index);
    check_found("it is not free, but the file ends before it does");
    write_meta(file, &meta, index);
    check_sound();
    close(file);
}

TEST(trees_that_the_meta_page_misdescribes_are_found)
{
    make_store();
    int file = open_file();
    uint64_t index;
    LmdbMetaPage meta = read_meta(file, &index);
    for (size_t i = 0; i < LMDB_ROOT_COUNT; i++) {
        LmdbMetaPage bad = meta;
        bad.trees[i].root = meta.last_page + 5;
        write_meta(file, &bad, index);
        check_found("but the last page is");
        bad = meta;
        bad.trees[i].root = meta.trees[!i].root;
        write_meta(file, &bad, index);
        CHECK(walk_all().result.finding_count > 0);
        bad = meta;
        bad.trees[i].flags ^= 4;
        write_meta(file, &bad, index);
        check_found("it says flags");
        bad = meta;
        bad.trees[i].depth++;
        write_meta(file, &bad, index);
        check_found("it says depth");
        bad = meta;
        bad.trees[i].entries++;
        write_meta(file, &bad, index);
        check_found("it says entries");
        bad = meta;
        bad.trees[i].leaf_pages++;
        write_meta(file, &bad, index);
        check_found("it says leaf pages");
    }
    close(file);
}

TEST(a_page_with_a_wrong_header_is_found)
{
    make_store();
    int file = open_file();
    Page leaf = find_leaf(file);
    change(file, &leaf, offsetof(LmdbPageHeader, page), 1);
    check_found("it says that it is page");
    change(file, &leaf, offsetof(LmdbPageHeader, flags), 1);
    check_found("it has flags 0x3");
    change(file, &leaf, offsetof(LmdbPageHeader, lower), 1);
    check_found("cannot be right");
    change(file, &leaf, offsetof(LmdbPageHeader, lower), PAGE);
    check_found("cannot be right");
    change(file, &leaf, offsetof(LmdbPageHeader, lower), -2);
    check_found("its nodes overlap or leave a gap");
    change(file, &leaf, offsetof(LmdbPageHeader, upper), -2);
    check_found("its nodes overlap or leave a gap");
    change(file, &leaf, offsetof(LmdbPageHeader, upper), 2);
    check_found("cannot be where it is");
    Page empty = {.number = leaf.number};
    write_page(file, &empty);
    check_found("it says that it is page 0");
    write_page(file, &leaf);
    check_sound();
    close(file);
}

TEST(nodes_that_cannot_be_right_are_found)
{
    make_store();
    int file = open_file();
    Page leaf = find_leaf(file);
    size_t pointer = sizeof(LmdbPageHeader) + 2;
    change(file, &leaf, pointer, 1);
    check_found("its node 1 cannot be where it is");
    change(file, &leaf, pointer, (int)node_offset(&leaf, 0) - (int)node_offset(&leaf, 1));
    check_found("its node 1 cannot be where it is");
    change(file, &leaf, pointer, PAGE);
    check_found("its node 1 cannot be where it is");
    size_t node = node_offset(&leaf, 1);
    change(file, &leaf, node + offsetof(LmdbNode, low), 2);
    check_found("its nodes overlap or leave a gap");
    change(file, &leaf, node + offsetof(LmdbNode, key_bytes), 2);
    check_found("its nodes overlap or leave a gap");
    change(file, &leaf, node + offsetof(LmdbNode, key_bytes), 600);
    check_found("its node 1 cannot be where it is");
    change(file, &leaf, node + offsetof(LmdbNode, flags), 4);
    check_found("its node 1 has flags 0x4");
    close(file);
}

TEST(keys_out_of_order_are_found)
{
    make_store();
    int file = open_file();
    Page leaf = find_leaf(file), swapped = leaf;
    uint8_t *pointers = swapped.bytes + sizeof(LmdbPageHeader);
    memcpy(pointers, leaf.bytes + sizeof(LmdbPageHeader) + 2, 2);
    memcpy(pointers + 2, leaf.bytes + sizeof(LmdbPageHeader), 2);
    write_page(file, &swapped);
    check_found("out of order in");
    // In order in its page, and not where the parent says.
    Page high = leaf;
    LmdbPageHeader header = header_of(&leaf);
    size_t last = node_offset(&leaf, lmdb_node_count(&header) - 1);
    high.bytes[last + sizeof(LmdbNode)] = 'z';
    write_page(file, &high);
    check_found("out of order in");
    write_page(file, &leaf);
    Page root = find_root(file), low = root;
    low.bytes[node_offset(&root, 1) + sizeof(LmdbNode)] = 'a';
    write_page(file, &low);
    check_found("out of order in");
    close(file);
}

TEST(children_that_are_not_there_or_twice_there_are_found)
{
    make_store();
    int file = open_file();
    Page root = find_root(file);
    size_t at = node_offset(&root, 1);
    change(file, &root, at + offsetof(LmdbNode, high), 1);
    check_found("but the last page is");
    change(file, &root, at, (int)child_of(&root, 0) - (int)child_of(&root, 1));
    check_found("it is used twice");
    change(file, &root, at, (int)root.number - (int)child_of(&root, 1));
    check_found("it is used twice");
    change(file, &root, at, -(int)child_of(&root, 1));
    check_found("it names page 0, but");
    close(file);
}

TEST(a_damaged_subtree_leaves_the_rest_to_be_walked)
{
    make_store();
    Walk whole = walk_all();
    int file = open_file();
    Page leaf = find_leaf(file);
    Page empty = {.number = leaf.number};
    write_page(file, &empty);
    Walk walk = walk_all();
    CHECK_EQ(walk.result.finding_count, 1);
    CHECK_EQ(walk.result.leaked_pages, 0);
    LmdbPageHeader header = header_of(&leaf);
    CHECK(whole.row_count - walk.row_count <= lmdb_node_count(&header));
    CHECK(walk.row_count < whole.row_count);
    close(file);
}

TEST(leaves_at_another_depth_are_found)
{
    make_store();
    int file = open_file();
    Page root = find_root(file), leaf = find_leaf(file);
    // A branch in the place of a leaf, with two children that are leaves of the same tree.
    Page branch = root;
    branch.number = leaf.number;
    memcpy(branch.bytes, &leaf.number, sizeof leaf.number);
    write_page(file, &branch);
    CHECK(walk_all().result.finding_count > 0);
    check_found("this leaf is at depth");
    close(file);
}

TEST(overflow_pages_that_cannot_be_right_are_found)
{
    make_store();
    int file = open_file();
    Page page = read_page(file, find_overflow_page(file));
    change(file, &page, offsetof(LmdbPageHeader, page), 1);
    check_found("it is not the overflow page that page");
    change(file, &page, offsetof(LmdbPageHeader, flags), 2);
    check_found("it is not the overflow page that page");
    change(file, &page, offsetof(LmdbPageHeader, lower), -1);
    check_found("for a value that needs");
    change(file, &page, offsetof(LmdbPageHeader, upper), 2000);
    check_found("but the last page is");
    close(file);
}

TEST(a_free_list_that_cannot_be_right_is_found)
{
    make_store();
    int file = open_file();
    size_t at;
    uint64_t count, first, index;
    Page page = find_free_row(file, &at, &count);
    LmdbMetaPage meta = read_meta(file, &index);
    memcpy(&first, page.bytes + at + 8, sizeof first);
    plant_free(file, &page, at, count + 1000);
    check_found("a row of the free list cannot be right");
    plant_free(file, &page, at + 8, meta.last_page + 1);
    check_found("out of order");
    plant_free(file, &page, at + 16, first);
    check_found("out of order");
    check_found("the free list has it twice");
    plant_free(file, &page, at + 8, 1);
    check_found("out of order");
    uint64_t leaf = find_leaf(file).number;
    plant_free(file, &page, at + 8, leaf);
    check_found("it is in use, but the free list has it");
    plant_free(file, &page, at, count - 1);
    check_found("neither in use nor free");
    plant_free(file, &page, at - 8, meta.txn_id + 1);
    check_found("a row of the free list cannot be right");
    close(file);
}
