// A store whose free pages lie scattered, as those of one that has been used for a while.

#pragma once

#include "bench.h"

enum { APPEND_TEXT_BYTES = 300 };

// Fills a store with sessions of messages and purges every second one. `sessions` stay, each with
// `messages` / `session_count` entries or so. `has_operation_ids`: its writes carried some.
void aged_make(const char *path, size_t messages, bool has_operation_ids, IdText *sessions,
               size_t session_count);
