// Processes: tells a child of fork from its parent.
//
// Objects that belong to one process (locks, threads, connections) store process_generation() when
// they are made. A child of fork has another generation and must not use them. This is cheaper than
// getpid, and unlike a pid a generation is never used again.

#pragma once

// Returns the number of forks between the process that loaded the program and this one. A child's
// differs from its parent's if the parent has called this before the fork.
unsigned process_generation(void);
