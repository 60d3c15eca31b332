// Messages as UI toolkits want them: the UIMessage of the AI SDK, one JSON object each.
//
//     {"id": …, "role": "assistant", "parts": [
//         {"type": "text", "text": …}
//         {"type": "reasoning", "text": …}
//         {"type": "file", "url": …, "mediaType": …, "filename": …}
//         {"type": "step-start"}
//         {"type": "tool-NAME", "toolCallId": …, "state": …, "input": …,
//          "output": … or "errorText": …}]}
//
// Left out: ignored text, files of type text/plain and directories, and every extension but
// step-start (step-finish, patch, snapshot, compaction, agent). A tool's state is output-available
// or output-error once it is completed or failed, or its result is in the message;
// input-available before, input-streaming while it is pending. Its output is the content of the
// result in the same message; null if it is completed and there is none.

#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "names.h"

// Whether a UI shows it: a turn of a user, an assistant or the system that is not deleted.
bool ui_message_is_shown(const Message *message);

// Writes the object on one line, without the line's end. JSON that the message holds is written as
// ASCII, so what it says cannot move a terminal's cursor.
void ui_message_write(FILE *out, const Message *message);
