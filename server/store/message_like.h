// Likeness: whether a message that a client sends again is one that is stored.

#pragma once

#include <stdbool.h>

#include "names.h"

// Whether two messages say the same, as AppendExchange's manual has it: what a server issues or a
// client may no longer know (ids, times, usage, status, …) is not compared.
bool message_is_like(const NewMessage *sent, const Message *stored);

// Whether a message of role SYSTEM has text parts alone, which put together are `prompt`.
bool message_is_prompt(const NewMessage *sent, const char *prompt);
