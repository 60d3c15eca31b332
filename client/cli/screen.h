// A full-screen program on the terminal. What was there before comes back, however the program
// ends: by a key, Ctrl-C, a signal, or Ctrl-Z.

#pragma once

#include <stdbool.h>

typedef enum ScreenEvent {
    SCREEN_TIMEOUT,
    SCREEN_KEY,
    SCREEN_CHANGED, // resized, or continued after Ctrl-Z: draw again
    SCREEN_SIGNAL,  // end: call screen_close, then screen_obey
} ScreenEvent;

// Takes over the terminal. Returns false, and changes nothing, if standard input or output is not a
// terminal.
bool screen_open(void);

// Waits for a key or a signal, for at most `timeout_ms`.
ScreenEvent screen_wait(int timeout_ms, char *out_key);

// Restores the terminal. Does nothing if it was not taken over.
void screen_close(void);

// Ends the process by the signal that screen_wait reported.
void screen_obey(void);

// Returns the size; 80 × 24 if it is not known.
void screen_size(int *out_columns, int *out_rows);
