// Which bytes of a sound data.mdb anybody reads. A change of any other byte is no damage:
//
// - free pages, and the space between the offsets and the nodes of a page;
// - the byte after a node of odd size, and the bytes after the value on its overflow pages;
// - `pad` of a page, and in a branch the key of the first node;
// - of the older meta page everything but what identifies it; of both the address and the size of
//   the map, which each open chooses anew.

#pragma once

#include <stddef.h>
#include <stdint.h>

typedef enum ByteUse {
    BYTE_UNUSED,
    BYTE_UNCLEAR, // a change may fit all that is known: a meta page's or a free row's transaction
    BYTE_OF_ROW,  // a key or a value: the row's checksum tells a change
    BYTE_OF_PAGE, // what the page walk checks
} ByteUse;

// Sets `used`, of `size` bytes, to what each byte is. The file must be sound.
void used_bytes_find(const uint8_t *file, size_t size, uint8_t *used);
