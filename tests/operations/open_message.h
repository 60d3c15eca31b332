// Steps on open messages: parts appended one by one, and the end.

#pragma once

#include "entries.h"
#include "store/message_open.h"

// Appends an open entry without parts, and returns its id.
const char *open_ok(Fixture *f, const char *session, Role role);

Part *text_part(Fixture *f, const char *id, const char *text);
Part *tool_part(Fixture *f, const char *id, const char *name, ToolState state);

// Each makes a call that must succeed, or fail.
Receipt *append_part_ok(Fixture *f, const char *message, Part *part);
void append_part_fails(Fixture *f, const char *message, Part *part, const char *reason);
Receipt *seal_ok(Fixture *f, const char *message, SealMessageRequest request);
void seal_fails(Fixture *f, const char *message, SealMessageRequest request, const char *reason);

// The parts as GetMessage returns them, "id=text" or "id:name/state": "p1=hello p2:ls/3".
const char *parts_of(Fixture *f, const char *message);

// Checks every index of the store.
void check_store_ok(Fixture *f);
