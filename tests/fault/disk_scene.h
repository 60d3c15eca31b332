// A store on a disk that fails, with texts that are numbered: what was acknowledged, what was
// refused, and what a death of the process or of the machine leaves.

#pragma once

#include "disk.h"
#include "engine_call.h"

enum { SCENE_KEPT = 40, SCENE_TEXTS_MAX = 4000 };

typedef struct DiskScene {
    EngineOptions options;
    char directory[600];
    char report[600]; // what is logged
    Engine *engine;
    IdText session;
    char instance[64];
    unsigned next; // number of the next text
    unsigned texts[SCENE_TEXTS_MAX];
    size_t count; // of those that are or may be stored; all but the last one were acknowledged
} DiskScene;

// A store with SCENE_KEPT texts that are on the disk, which disk_keep remembers. data.mdb is
// flushed when the store is opened, and not again. `flush_ms` 0: not relaxed. On the heap; the
// caller frees it with scene_close.
DiskScene *scene_open(unsigned flush_ms);
DiskScene *scene_open_with(unsigned flush_ms, size_t kept); // with another number of texts
void scene_close(DiskScene *scene);

// Closes the store and opens it again, in the same boot.
void scene_reopen(DiskScene *scene, unsigned flush_ms, unsigned flush_data_ms);
Error scene_open_engine(DiskScene *scene, const char *boot_id);

// Appends the next text of `bytes` bytes. One that is refused is not among the texts.
Error scene_append_bytes(DiskScene *scene, size_t bytes, bool is_sync);
Error scene_append(DiskScene *scene, bool is_sync);
void scene_append_ok(DiskScene *scene, size_t count);
// The text that was appended last, and not acknowledged, may be stored.
void scene_note_unknown(DiskScene *scene);

// Appends until the store closes itself for a disk that fails in the background.
void scene_append_until_closed(DiskScene *scene);

// Every call is refused, and `line` was logged once.
void scene_expect_closed(DiskScene *scene, const char *line);
size_t scene_logged(const DiskScene *scene, const char *text);

// The session has the first `count` texts, each once, in order, and no other.
void scene_expect_texts(const DiskScene *scene, Engine *engine, size_t count);

size_t scene_count(const DiskScene *scene); // texts that the session has

typedef enum SceneLoss { LOSES_NOTHING, LOSES_LOG, LOSES_LOG_AND_DATA, LOSES_DATA } SceneLoss;

// What the files are opened as, after a death at this moment.
typedef struct SceneAfter {
    const char *boot_id; // "one" is that of the death
    SceneLoss loss;      // since disk_keep
    size_t count;        // of the texts that must be there
    bool is_renewed;     // the store has a new instance id
} SceneAfter;

// Opens a copy of the files, checks it, writes to it, lets it die again, and opens that in another
// boot.
void scene_expect_after(const DiskScene *scene, SceneAfter after);
// The same without writing to it.
void scene_expect_copy(const DiskScene *scene, const char *boot_id, size_t count);
