// Entries of any shape: appending them, reading them back, and looking at what is stored of them.

#pragma once

#include "session_steps.h"
#include "store/message.h"

// Appends an entry. The pointer may be to a compound literal:
//     Receipt *receipt = entry_ok(f, session, &(NewMessage){.role = ROLE_USER});
Receipt *entry_ok(Fixture *f, const char *session, NewMessage *message);
void entry_fails(Fixture *f, const char *session, NewMessage *message, const char *reason);

// The same for a user's message with one part.
Receipt *part_ok(Fixture *f, const char *session, Part *part);
void part_fails(Fixture *f, const char *session, Part *part, const char *reason);

Message *message_ok(Fixture *f, const char *id);        // GetMessage
const char *newest_ok(Fixture *f, const char *session); // the id of the log's newest entry

// Appends a marker that cuts off at `before` (NULL: keep_all) and returns its id.
const char *marker_ok(Fixture *f, const char *session, const char *before, const char *summary);

// Appends a SETTING whose value is `text`, and returns its id.
const char *setting_ok(Fixture *f, const char *session, const char *subtype, const char *text);

Receipt *message_delete_ok(Fixture *f, const char *message);
Receipt *message_purge_ok(Fixture *f, const char *message);

// The ids of messages, each as its place in `ids`: "a c b". '?' for one that is not among them.
const char *order_of(Fixture *f, Message **messages, size_t count, const char *const *ids,
                     size_t id_count);

// `count` times the character, in the fixture's memory.
char *filled(Fixture *f, char character, size_t count);

// Whether any row of the store, in any table, holds these bytes.
bool store_holds(Fixture *f, const char *text);

// The sequence of the newest event: unchanged if a call wrote nothing.
uint64_t newest_sequence(Fixture *f);
