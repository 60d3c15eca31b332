// The record: everything that this process does to the files below a directory, as libc is asked
// to do it, in its order. libc's calls are defined in this program, so that liblmdb calls them,
// too; they do what is asked by system calls, but flush nothing: what a disk would have, image.c
// decides. A call that changes files in a way that is not recorded ends the process (record_no.c).

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RECORD_NAME_BYTES = 64, RECORD_NO_NODE = -1, RECORD_NODES_MAX = 4096 };

typedef enum RecordKind {
    RECORD_WRITE,        // to the page cache: any time from now on it may be on the disk
    RECORD_WRITTEN,      // an O_DSYNC write has returned: the record `begun` is on the disk
    RECORD_SIZE,         // ftruncate, or posix_fallocate of a larger file
    RECORD_NAME,         // a directory's entries change
    RECORD_FLUSH_BEGIN,  // of a file or a directory
    RECORD_FLUSH_END,    // what was done to it before the record `begun` is on the disk
    RECORD_FLUSH_FAILED, // … is called clean from then on: it is on the disk, or never will be
    RECORD_MARK,         // the test's own, `number`
} RecordKind;

typedef struct RecordEntry {
    char name[RECORD_NAME_BYTES];
    int node; // RECORD_NO_NODE: the name is taken away
} RecordEntry;

typedef struct Record {
    RecordKind kind;
    int node;
    uint64_t offset, size;
    uint8_t *bytes;
    size_t begun;
    uint64_t number;
    RecordEntry entries[2]; // the second's name may be "": a rename within the directory has two
} Record;

typedef struct Recording {
    Record *records;
    size_t count, capacity;
    bool is_directory[RECORD_NODES_MAX];
    bool is_log[RECORD_NODES_MAX]; // a segment of a log, by its name
    int node_count;                // node 0 is the directory
} Recording;

// What is below `root` now is taken for flushed.
void record_begin(const char *root);
void record_mark(uint64_t number);
// Makes the `nth` flush of a file from now on fail with EIO, once. 0: none, and whether one has
// failed since the last call.
bool record_fail_flush(size_t nth);
// The `nth` flush of a file that is not of the log stays under way until it is released, once.
void record_hold_flush(size_t nth);
// The next flush of a segment of the log stays under way until it is released, once, or for a few
// milliseconds: a writer that needs another segment waits for it.
void record_hold_log_flush(void);
bool record_has_held(void); // such a flush has begun: it is held, or was
void record_release_flush(void);
// The process dies as by kill -9: of what it does from now on nothing happens, which record_revive
// sees to once it has closed all its files. Then another process goes on. But it lives on while a
// flush has failed, as record_fail_flush tells: that one it must live to tell.
void record_kill(void);
// … at its `nth` write from now on, after the bytes are in the page cache. 0: it does not.
void record_kill_in(size_t nth);
bool record_is_dead(void);
void record_revive(void);
size_t record_count(void); // so many records are there now
// Ends the record and hands it over; record_free frees it.
void record_end(Recording *out);
void record_free(Recording *recording);

// Removes a name of an open directory, and records it.
int record_remove_in(int directory, const char *name, int flags);

// For those who must not do something to a recorded file.
bool record_has_file(int file);
bool record_has_path(const char *path);
