// Threads that serve whoever made them.

#pragma once

#include <pthread.h>

#include "base/error.h"

// Starts a thread that takes no signals: they are the program's, whose library this may be, and
// none of its handlers expects to run here. ERROR_IO.
MUST_USE Error thread_start(pthread_t *out, void *(*run)(void *context), void *context);
