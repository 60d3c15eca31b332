// Steps on sessions that several tests take. What they return lives until the fixture is closed,
// except where a static buffer is named.

#pragma once

#include "fixture.h"

// protobuf-c's strings are not const; requests are never written through.
#define CHARS(text) ((char *)(uintptr_t)(text))

// An id of the right form that no store has issued.
#define UNKNOWN_ID "01ARZ3NDEKTSV4RRFFQ69G5FAV"

// A NewSession with its required fields, project_dir "/project".
NewSession new_session(void);

// Each makes a call that must succeed.
Session *create_ok(Fixture *f, NewSession *wanted);
const char *slug_session_ok(Fixture *f, const char *slug); // a new PRIMARY session's id
Session *fork_before_ok(Fixture *f, const char *session, const char *before);
Session *fork_at_head_ok(Fixture *f, const char *session);
Session *rewind_ok(Fixture *f, const char *session, const char *message); // "": to nothing
Session *delete_ok(Fixture *f, const char *session);
Session *restore_ok(Fixture *f, const char *session);
Session *archive_ok(Fixture *f, const char *session, bool archived);
bool purge_ok(Fixture *f, const char *session, bool keep_for_forks); // whether it was kept
void compact_ok(Fixture *f, const char *session, const char *before_message);

// Waits until no purge has rows left to delete.
void purges_settle(Fixture *f);

// The rows of a table, by its name on disk.
uint64_t table_rows(Fixture *f, const char *table);

// The slugs of all pages, joined by blanks: "c b a"; the listing's limit is that of each page. In a
// static buffer, good until the next call.
const char *listed_slugs(Fixture *f, ListSessionsRequest request);

// `size` bytes of 'a', on the heap: free it.
char *text_of_size(size_t size);
char *json_of_size(size_t size); // a JSON string, quotes included

void check_totals(const Totals *totals, int64_t input, int64_t output, int64_t cache_read,
                  int64_t cache_write, int64_t cost);

// A seam with which a test stops a purge between two slices.
typedef struct PurgeGate {
    int commits_left; // then one transaction is refused; below zero: none
    int deletes;      // so far in the transaction
    int deletes_max;  // the most in any that was committed
} PurgeGate;

KvSeam purge_gate_seam(PurgeGate *gate);

// Purges, which must succeed, and stops the purge after so many slices: it waits for another write
// or for a restart then. Returns whether it was kept.
bool purge_and_stop_ok(Fixture *f, PurgeGate *gate, const char *session, bool keep_for_forks,
                       int slices);
