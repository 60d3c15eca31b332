// What the files below a directory hold at a moment, to be put back into them: as the page cache
// has them when a process dies. lock.mdb is left out: of a process that died LMDB clears it, and
// this one lives on.

#pragma once

typedef struct Keep Keep;

// Asks the kernel by system calls, none of which is recorded. On the heap.
Keep *keep_files(const char *root);

// Frees it. The files must be there, closed by all.
void keep_restore(Keep *keep);
