// Writes the header, the first line of a file, without the line's end.

#pragma once

#include <stdio.h>

#include "base/slice.h"
#include "names.h"

// Writes a new header of this version. `parent` is the session that the session was forked from; it
// is named as pi would name its file. NULL: there is none, or source_parent names it.
void pi_header_write(FILE *out, const Session *session, const Session *parent, unsigned version);

// Writes a header of an older version again, with everything that it says, as one of version 3.
void pi_header_write_again(FILE *out, Slice header);
