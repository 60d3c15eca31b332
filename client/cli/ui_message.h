// Messages as UIMessages of the AI SDK, for UI toolkits: one JSON object each.
//
//     {"id": …, "role": "assistant", "parts": [
//         {"type": "text", "text": …}
//         {"type": "reasoning", "text": …}
//         {"type": "file", "url": …, "mediaType": …, "filename": …}
//         {"type": "step-start"}
//         {"type": "tool-NAME", "toolCallId": …, "state": …, "input": …,
//          "output": … or "errorText": …}]}
//
// Left out are ignored text, files of type text/plain, directories, and all extensions except
// step-start (step-finish, patch, snapshot, compaction, agent). The state of a tool is
// input-streaming while it is pending; output-available or output-error once it has completed or
// failed, or if its result is in the message; otherwise input-available. The output is the content
// of the result in the same message, or null if the tool has completed and there is none.

#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "names.h"

// Returns whether a UI shows the message: a turn of user, assistant or system that is not deleted.
bool ui_message_is_shown(const Message *message);

// Writes the object on one line, without a line feed. JSON inside the message is written as ASCII,
// so it cannot act on a terminal.
void ui_message_write(FILE *out, const Message *message);
