// Processes: which one this is.
//
// What belongs to one process (locks, threads, connections) notes process_generation() when it is
// made, and is left alone by a child of fork, where the generation is another. That is cheaper than
// getpid, and no pid is given out twice.

#pragma once

// How many forks are between this process and the one that loaded the program; never the same in
// a child as in its parent, once it was asked for in the parent.
unsigned process_generation(void);
