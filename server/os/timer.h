// Timers that are file descriptors: poll and epoll can wait for their end.

#pragma once

#include "report/error_detail.h"

// Opens a timer that does not run. The caller closes the descriptor with close. `purpose` completes
// the sentence "cannot open a timer to …". Returns ERROR_IO, and says in `detail` why.
MUST_USE Error timer_open(const char *purpose, ErrorDetail *detail, int *out);

// Starts the timer, or starts it again. It ends once.
void timer_start(int timer, int64_t milliseconds);

// Returns whether the timer has ended since it was started. True once.
bool timer_has_ended(int timer);
