// Tables: aligned on a terminal, by libsmartcols; elsewhere a line a row, the cells with tabs
// between them, without headings, nothing cut.
//
// A long list is printed in pieces, each with table_flush, so that the first rows are seen at once
// and memory stays small; therefore its columns have fixed widths.

#pragma once

#include "cli.h"

typedef enum ColumnKind {
    COLUMN_LEFT,
    COLUMN_RIGHT, // numbers
    COLUMN_REST,  // what is left of the width; cut with "…"
} ColumnKind;

typedef struct Column {
    const char *name;
    ColumnKind kind;
    int width;         // on a terminal, more than the name has; of COLUMN_REST the least
    int terminal_from; // left out on a terminal of fewer columns
} Column;

enum { TABLE_COLUMNS_MAX = 16 };

typedef struct Table Table;

// `columns` (ended by one without a name) is borrowed until the end. NULL when there is no memory;
// the other functions then do nothing.
Table *table_open(const Cli *cli, const Column *columns);

// The next cell of the row; after its last one the next row begins. `text` is copied.
void table_cell(Table *table, const char *text);

// A cell that looks different on a terminal than in a pipe.
void table_cell_two(Table *table, const char *on_terminal, const char *in_pipe);

// Prints the rows so far and forgets them.
void table_flush(Table *table);

// Flushes and frees. For CLEANUP: table_closep.
void table_closep(Table **table);
