// The first line of a file. Both functions write it without its end.

#pragma once

#include <stdio.h>

#include "base/slice.h"
#include "names.h"

// A header of this version for a session that has none of pi, without its line's end. `parent` is
// the session that it was forked from, which is named as pi names its file; NULL: none, or
// source_parent names it.
void pi_header_write(FILE *out, const Session *session, const Session *parent, unsigned version);

// The header of an older version once more, with all that it says, as the header of version 3.
void pi_header_write_again(FILE *out, Slice header);
