// Activity: what a thread is working on, for the note that a crash leaves (daemon/crash_notes.h).

#pragma once

// A word without spaces that lives as long as the process, such as a method's name; "" if there is
// nothing to say. Each thread has its own.
extern _Thread_local const char *activity;
