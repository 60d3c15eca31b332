// The heap: bounds what malloc keeps of freed memory.

#pragma once

// Makes malloc give memory back to the kernel soon after it was freed. Without this, a burst of
// large blocks leaves tens of megabytes at the ends of the heaps of threads, which malloc_trim does
// not release. Call it before the first thread is started.
void heap_bound(void);
