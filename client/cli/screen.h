// A screen of one's own on the terminal: what was there before comes back, however the program
// ends: by a key, by Ctrl-C, by a signal, stopped by Ctrl-Z and continued.

#pragma once

#include <stdbool.h>

typedef enum ScreenEvent {
    SCREEN_TIMEOUT,
    SCREEN_KEY,
    SCREEN_CHANGED, // another size, or back from Ctrl-Z: draw it again
    SCREEN_SIGNAL,  // it is to end: screen_close, then screen_obey
} ScreenEvent;

// Takes the terminal. False, and nothing happened, if standard input or output is none.
bool screen_open(void);

// Waits for a key or a signal, `timeout_ms` at most.
ScreenEvent screen_wait(int timeout_ms, char *out_key);

// Gives the terminal back. Does nothing if it was not taken.
void screen_close(void);

// Ends the process by the signal that screen_wait reported, as if nobody had caught it.
void screen_obey(void);

// The size: 80 × 24 if it is not known.
void screen_size(int *out_columns, int *out_rows);
