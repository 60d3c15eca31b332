// A store whose calls fail, with what is logged and what the last caller was told.

#pragma once

#include "engine_call.h"

typedef struct Cause {
    EngineOptions options;
    Engine *engine;
    IdText session;
    char log[600];
    char said[ERROR_DETAIL_BYTES_MAX]; // to the last caller
} Cause;

// Opens a store in the test's directory. `flush_ms` 0: not relaxed.
void cause_open(Cause *scene, unsigned flush_ms);

// Makes a call, whose request it frees.
Error cause_call(Cause *scene, Slice bytes);

Slice cause_append_request(Cause *scene, bool is_sync);
Slice cause_append_text_request(Cause *scene, char *text, bool is_sync);
Error cause_append(Cause *scene);
Slice cause_get_session_request(Cause *scene);
Error cause_get_session(Cause *scene);

// DIR in a pattern stands for the store's directory.
void cause_check_logged(const Cause *scene, const char *pattern);
void cause_check_said(const Cause *scene, const char *pattern); // all of it
