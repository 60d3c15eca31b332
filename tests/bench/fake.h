// Systems that are nothing but a record of how they were called: a, b, and c, which cannot read.

#pragma once

#include "run.h"

enum { CALLS_MAX = 4096 };

extern char calls[CALLS_MAX]; // who was asked for a history, in order
extern size_t call_count;
extern size_t text_bytes_of_b; // what b's history has; a's has 7

// Whether the program that this runs ends with a failure.
bool fails(void (*run)(void));
