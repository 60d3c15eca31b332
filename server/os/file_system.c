// File systems that are not local, by their magic numbers.

#include "os/file_system.h"

#include <errno.h>
#include <linux/magic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/statfs.h>

Error file_system_check(const char *directory, unsigned long type, ErrorDetail *detail)
{
    struct statfs disk;
    if (statfs(directory, &disk)) {
        return error_say_errno(detail, errno, "cannot open the directory %s", directory);
    }
    const char *name = NULL;
    if (!file_system_is_local(type ? type : (unsigned long)disk.f_type, &name))
        return error_say(detail, ERROR_INVALID_ARGUMENT,
                         "%s is on %s; the store's locks and its map need a local file system",
                         directory, name);
    return ERROR_NONE;
}

bool file_system_is_local(unsigned long f_type, const char **out_name)
{
    static const struct {
        uint32_t f_type;
        const char *name;
    } REFUSED[] = {
        {NFS_SUPER_MAGIC, "NFS"},   {SMB_SUPER_MAGIC, "SMB"}, {SMB2_SUPER_MAGIC, "SMB"},
        {CIFS_SUPER_MAGIC, "CIFS"}, {V9FS_MAGIC, "9p"},       {FUSE_SUPER_MAGIC, "FUSE"},
    };
    for (size_t i = 0; i < sizeof(REFUSED) / sizeof(*REFUSED); i++) {
        // Where f_type is a 32-bit int, the larger magics arrive with their sign extended.
        if (REFUSED[i].f_type != (uint32_t)f_type) continue;
        *out_name = REFUSED[i].name;
        return false;
    }
    return true;
}
