// What the random messages hold, and how they must read.

#pragma once

#include "run.h"

// Text of a random length: mostly short, at times around a chunk's size or 20 KiB.
char *content_text(Run *run);

// One of these, or "".
const char *content_pick(Run *run, const char *const *words, size_t count);
#define CONTENT_PICK(run, words) content_pick((run), (words), sizeof(words) / sizeof(*(words)))

// A valid message of a kind, without external id and marker.
NewMessage *content_message(Run *run, MessageKind kind);

// Makes a valid message invalid; returns the reason.
const char *content_break(Run *run, NewMessage *message);

Part *content_part(Run *run);
Usage *content_usage(Run *run);
ModelRef *content_model(Run *run);
Totals *content_totals(Run *run);

// The Message that was appended as `receipt` says: shallow, of the request's memory.
Message content_expected(const NewMessage *sent, const Receipt *receipt);

// Joins the texts that are not empty with a space between them: more of them than a preview holds.
// Owned; NULL if there are none.
char *content_texts(Part *const *parts, size_t count);

// Writes into an entry what the model must know of its content.
void content_note(Entry *entry, const NewMessage *sent);

// The hash of a whole Message.
Hash content_hash(Run *run, const Message *message);

// Notes how the entry must read from here on; and, if a call of the ledger produced it, how when
// that call is gone.
void content_set(Run *run, Entry *entry, const Message *message);
void content_forget_call(Entry *entry);

// Checks a Message that a read returned.
void content_check(Run *run, const Message *actual, Entry *entry);
