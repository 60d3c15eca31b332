// What a session is called and which model it has: what the last entry of its file says that says
// it. What a person has put in its place stays until the file says something new.

#pragma once

#include "base/error.h"
#include "names.h"

typedef struct PiSettings {
    char *title, *provider, *model;    // owned; NULL: none is known
    uint32_t title_entry, model_entry; // who says so
    bool sets_title, sets_model;       // the session has none, or one that came from its file
    char *title_before, *provider_before, *model_before; // the session's own; owned
} PiSettings;

// What a session's model is called as long as none is known: pi has none where we need one.
#define PI_MODEL_UNKNOWN "unknown"

// `session` is as the store has it, before its entries are looked at. ERROR_OUT_OF_MEMORY.
MUST_USE Error pi_settings_begin(PiSettings *settings, const Session *session);
void pi_settings_free(PiSettings *settings);

typedef struct PiSaid {
    uint32_t entry; // of the file
    bool is_new;    // to the store
    MessageKind kind;
    const char *text;
    const ModelRef *model; // NULL: none
} PiSaid;

// Takes in what one entry says, in any order of them. ERROR_OUT_OF_MEMORY.
MUST_USE Error pi_settings_note(PiSettings *settings, const PiSaid *said);
