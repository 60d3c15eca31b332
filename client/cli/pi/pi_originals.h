// Originals on their way to the store: several at a time, for none needs another.

#pragma once

#include "base/buffer.h"
#include "tine.h"

typedef struct PiOriginals PiOriginals;

// Borrows the client until the end. NULL: no memory.
PiOriginals *pi_originals_begin(Tine *tine);

// Takes the bytes. Waits while there is too much under way.
void pi_originals_put(PiOriginals *originals, const char *message_id, Buffer *bytes);

// Waits until everything is stored, and ends. Returns 0, or the code of the first failure, which
// `out_status` explains. NULL is allowed.
int pi_originals_end(PiOriginals *originals, TineStatus *out_status);
