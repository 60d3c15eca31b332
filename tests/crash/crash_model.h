// What the store must hold: the writes that were acknowledged, and nothing else.

#pragma once

#include "crash_child.h"

enum { MODEL_SESSIONS_MAX = 8192, MODEL_MESSAGES_MAX = 65536, NO_SESSION = -1 };

typedef struct ModelSession {
    IdText id;
    int parent; // or NO_SESSION
    bool is_purged;
    uint64_t entry_count;
    uint64_t sequence; // the next
    int64_t own_cost, total_cost;
    IdText last_entry;
} ModelSession;

typedef struct ModelMessage {
    IdText id;
    int session;
    uint64_t sequence;
    uint32_t number;
    bool is_deleted;
} ModelMessage;

typedef struct Model {
    ModelSession sessions[MODEL_SESSIONS_MAX];
    size_t session_count;
    ModelMessage messages[MODEL_MESSAGES_MAX];
    size_t message_count;
    size_t checked_count; // messages that were compared already
} Model;

int model_add_session(Model *model, const char *id, int parent);

// Takes note of a write that happened.
void model_apply(Model *model, const CrashRecord *record);

// Compares every session, and the messages since the last comparison (`all`: every message).
void model_compare(Model *model, Engine *engine, bool all);
