// The message of an entry: roles, content, usage, how it ended.

#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "names.h"

// Maps the object `json` into `out`, a conversation entry; `version` is the file's.
// `out->created_at` must be the entry's time: it becomes `completed_at` if the message has a time
// of its own. Members that have no field of ours are appended to `rest`. ERROR_TOO_LONG: the
// arena's budget is used up. ERROR_OUT_OF_MEMORY.
MUST_USE Error pi_message_map(Arena *arena, Slice json, unsigned version, NewMessage *out,
                              Buffer *rest);

// Sets the model of `out`, unless both names are empty. NULL: the arena was used up.
MUST_USE Error pi_message_set_model(Arena *arena, char *provider, char *name, NewMessage *out);

// Sets the usage of `out` from pi's object; anything else is no usage. Errors as above.
MUST_USE Error pi_message_set_usage(Arena *arena, Slice json, NewMessage *out);
