// Threads that belong to the program or library that starts them.

#pragma once

#include <pthread.h>

#include "base/error.h"
#include "report/error_detail.h"

// Starts a thread with all signals blocked but those of a crash: this may be a library, and the
// handlers of the program around it do not expect to run on its threads. `purpose` completes the
// sentence "cannot start a thread to …". Returns ERROR_OUT_OF_MEMORY if the system gives no thread;
// `detail` (NULL is allowed) then says why.
MUST_USE Error thread_start(pthread_t *out, void *(*run)(void *context), void *context,
                            const char *purpose, ErrorDetail *detail);

// Unblocks the signals of a crash on this thread, which a library has started with all blocked: a
// crash would end the process without its handler. Does nothing after the first call on a thread.
void thread_unblock_crashes(void);
