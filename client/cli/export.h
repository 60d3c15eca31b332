// Exports: sessions as lines of JSON that `tine import` takes back, or as Markdown for people.
//
// The first line is {"tine_export": 1}. Then, session by session, parents before children:
//
//     {"session": {…}}   as GetSession has it
//     {"call": {…}}      each call of its ledger
//     {"entry": {…}}     each entry of its log, all branches, in order; deleted ones too
//     {"original": {…}}  the bytes that an entry was imported from, if they were kept
//     {"memory": {…}}    each memory that is not forgotten
//     {"todos": {…}}     its task list, if it has one
//
// Entries that a session inherited from a purged parent come before its own.

#pragma once

#include "cli.h"

enum { EXPORT_FORMAT = 1 };

// Each writes one session with everything that belongs to it and returns an exit code.
MUST_USE int export_session(Cli *cli, FILE *out, const char *id);
MUST_USE int export_session_markdown(Cli *cli, FILE *out, const char *id);
