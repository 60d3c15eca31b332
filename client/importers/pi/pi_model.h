// The model of a session: that of the last entry of the file that has one. A model that a person
// has chosen here stays until the file brings a new entry with one.

#pragma once

#include "base/error.h"
#include "names.h"

// What the model of a session is called while none is known: pi has none where we need one.
#define PI_MODEL_UNKNOWN "unknown"

typedef struct PiModel {
    char *provider, *name;               // of `entry`; owned; NULL: no entry has one
    char *provider_before, *name_before; // the session's own; owned
    uint32_t entry;                      // of the file
    bool is_wanted;                      // the session's own is unknown, or came from the file
} PiModel;

// `session` is as the store has it, before its entries are noted. ERROR_OUT_OF_MEMORY.
MUST_USE Error pi_model_begin(PiModel *model, const Session *session);
void pi_model_free(PiModel *model);

// Notes the model of one entry of the file; NULL: it has none. `is_new`: the store did not have the
// entry. Entries may come in any order. ERROR_OUT_OF_MEMORY.
MUST_USE Error pi_model_note(PiModel *model, uint32_t entry, const ModelRef *said, bool is_new);
