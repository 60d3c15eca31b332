// Page check: after a reset of the machine, walks all pages of the store in the background.
//
// Until it has found nothing wrong, Describe offers no direct reads, and no purge is continued: a
// damaged page must not end a client, nor be written to. What it finds is in the log.

#pragma once

#include "rpc/engine.h"

typedef struct PageCheck PageCheck;

// Starts the walk if one is due. `*out` is NULL if not. ERROR_OUT_OF_MEMORY: no memory or no
// thread. The caller ends it with page_check_stop.
MUST_USE Error page_check_start(Engine *engine, ErrorDetail *detail, PageCheck **out);

// Ends the walk, if it still runs, and frees it. Call it before engine_end. NULL is allowed.
void page_check_stop(PageCheck *check);
