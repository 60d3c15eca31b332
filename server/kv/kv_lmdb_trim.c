// Giving the map's pages back. LMDB does not say where its map lies, the kernel does.

#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "kv/kv_lmdb.h"

// A line of /proc/self/maps: whether it is this file's, mapped for reading and shared.
static bool is_map_of(const KvFileId *file, const char *line, uintptr_t *out_begin,
                      uintptr_t *out_end)
{
    char modes[5];
    unsigned device_major, device_minor;
    uint64_t inode;
    int count = sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %x:%x %" SCNu64, out_begin, out_end,
                       modes, &device_major, &device_minor, &inode);
    return count == 6 && modes[0] == 'r' && modes[3] == 's' && inode == file->inode &&
           makedev(device_major, device_minor) == file->device;
}

void kv_trim(Kv *kv)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps) return;
    char line[512];
    uintptr_t begin, end;
    while (fgets(line, sizeof(line), maps)) {
        if (!is_map_of(&kv->data_file, line, &begin, &end)) continue;
        // Of a shared map of a file this drops this process's view only; who reads it meanwhile
        // finds the same bytes in the page cache.
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
    }
    fclose(maps);
}
