// Likeness: decides whether a message that a client sends again equals a stored one.

#pragma once

#include <stdbool.h>

#include "names.h"

// Returns whether two messages are equal in the sense of AppendExchange (store.proto). Fields that
// a server issues or that a client may no longer know (IDs, times, usage, status and others) are
// not compared.
bool message_is_like(const NewMessage *sent, const Message *stored);

// Returns whether a message has the role SYSTEM and only text parts, which joined are `prompt`.
bool message_is_prompt(const NewMessage *sent, const char *prompt);
