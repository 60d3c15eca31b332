// Calls on an engine without a client in between, from any thread: for tests that look at an engine
// under failure. A call's outcome is its Error, not the code that a client would be told.

#pragma once

#include "base/slice.h"
#include "harness.h"
#include "rpc/engine.h"

// The encoded Request of a call, to be freed. operation_id NULL: none; timeout_ms 0: none.
Slice engine_request(enum MethodIndex method, const void *request, const char *operation_id,
                     int64_t timeout_ms);

// Makes a call and waits for it. `*out_response_pointer` (the pointer may be NULL) is the decoded
// reply of a call that succeeded, else NULL; engine_free frees it.
Error engine_call(Engine *engine, enum MethodIndex method, const void *request,
                  const char *operation_id, void *out_response_pointer);
void engine_free(void *response);

// The same of a call with `sync` set: it waits for the disk.
Slice engine_request_synced(enum MethodIndex method, const void *request);
Error engine_call_synced(Engine *engine, enum MethodIndex method, const void *request);

// Checks the store and prints what is wrong with it.
#define CHECK_CLEAN(engine) CHECK(engine_is_clean(engine))
bool engine_is_clean(Engine *engine);

// Steps that must succeed. Ids go to `out`.
typedef char IdText[ULID_TEXT_BYTES + 1];
void engine_new_session(Engine *engine, const char *parent, IdText out);
void engine_append_text(Engine *engine, const char *session, const char *text, IdText out);

// Makes writes that change nothing until no purge is pending: the writer works on purges between
// batches, so after the answer to the next but one call a slice has run.
void engine_finish_purges(Engine *engine);
