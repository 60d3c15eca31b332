// Gives the map's pages back. LMDB does not say where its map is, so the kernel is asked.

#include "kv/durable/trim.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "kv/durable/data_file_fields.h"

// Returns whether a line of /proc/self/maps is of this file, mapped for reading and shared.
static bool is_map_of(FileId file, const char *line, uintptr_t *out_begin, uintptr_t *out_end)
{
    char modes[5];
    unsigned device_major, device_minor;
    uint64_t inode;
    int count = sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %x:%x %" SCNu64, out_begin, out_end,
                       modes, &device_major, &device_minor, &inode);
    return count == 6 && modes[0] == 'r' && modes[3] == 's' && inode == file.inode &&
           makedev(device_major, device_minor) == file.device;
}

void trim_map(DataFile *file)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps) return;
    char line[512];
    uintptr_t begin, end;
    while (fgets(line, sizeof(line), maps)) {
        if (!is_map_of(file->data_id, line, &begin, &end)) continue;
        // For a shared map of a file this drops only the view of this process. A thread that reads
        // at the same time finds the same bytes in the page cache.
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
    }
    fclose(maps);
}
