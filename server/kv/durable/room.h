// Room on the disk for the pages of a commit.
//
// A commit that the log has must not fail for a full disk. So the blocks that its pages may need
// are allocated before the log gets it.

#pragma once

#include "kv/durable/options.h"
#include "report/error_detail.h"

// Allocates blocks for `bytes` more bytes of pages than data.mdb has in use. The caller has a write
// transaction open. ERROR_STORE_FULL: neither the disk, or the map, nor free pages of the file have
// room. ERROR_IO.
MUST_USE Error room_reserve(DataFile *file, uint64_t bytes, ErrorDetail *detail);
