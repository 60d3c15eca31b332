// Page walk: reads the pages of data.mdb without LMDB and finds what is wrong with them.
//
// LMDB believes every page: a damaged one makes it abort, read outside its memory, or return other
// rows. The walk reads with pread and believes nothing, so no file can end the process. It checks
// one state of the file:
//
// - the meta pages: magic, version, page size, transaction;
// - each page of each tree: its number, flags and bounds; its nodes, which lie in it without gap or
//   overlap; its keys, in order and between the separators of its parents; the same depth for all
//   leaves; the counts of pages and entries against those that the tree is said to have;
// - the overflow pages: number, flags, count;
// - the free list: its pages in order, each in the file and not in use;
// - each page: it is used once, or free once, or a meta page.
//
// It does not see a change of a key or a value that breaks none of these rules; checksums of rows
// do. What nobody reads counts as no damage: free pages, the unused bytes of a page, the meta page
// of the older state except for what identifies it.
//
// Memory: two bits a page of the file, and a few pages. A subtree that cannot be read is left out,
// and the rest is still walked.

#pragma once

#include "kv/durable/page_walk_options.h"
#include "report/error_detail.h"

// Walks. Damage is reported and is no error. ERROR_OUT_OF_MEMORY; ERROR_IO: the file's size cannot
// be read; ERROR_UNAVAILABLE: the file no longer has the meta page of `txn_id`.
MUST_USE Error page_walk(const PageWalkOptions *options, ErrorDetail *detail, PageWalkResult *out);
