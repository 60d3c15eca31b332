// The content of a message as parts.

#pragma once

#include "base/arena.h"
#include "names.h"

// Fills the parts of `out`. `content` is a string or a list of blocks; anything else gives no
// parts. Errors as of pi_message_map.
MUST_USE Error pi_parts(Arena *arena, Slice content, NewMessage *out);

// The one part of a tool's result.
typedef struct PiToolResult {
    Slice tool_call_id, tool_name, content, details, is_error;
} PiToolResult;

MUST_USE Error pi_tool_result(Arena *arena, const PiToolResult *result, NewMessage *out);
