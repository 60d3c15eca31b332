// Room on the disk for the pages of a commit.
//
// Once the log has a record, its commit must not fail because the disk is full. So the blocks that
// the commit's pages may need are allocated first.

#pragma once

#include "kv/durable/options.h"
#include "report/error_detail.h"

// Allocates blocks for `bytes` more bytes of pages than data.mdb has in use. The caller has a write
// transaction open. ERROR_STORE_FULL: the disk or the map has no room, and the file has too few
// free pages. ERROR_IO.
MUST_USE Error room_reserve(DataFile *file, uint64_t bytes, ErrorDetail *detail);
