// Bytes as people write them, for tables of vectors.
//
//     0a 1B         bytes in hex; spaces separate nothing
//     'text'        its characters
//     (…)           what is inside, behind its length as a varint: a protobuf field's content
//     […]           what is inside, behind its length in eight bytes, big-endian: an SP frame's
//     61*5000       the byte before, so many times

#pragma once

#include "base/buffer.h"

// Appends what is noted. A mistake in the notation is one in a test, and ends the program.
void notation_read(Buffer *out, const char *notation);
