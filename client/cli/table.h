// Tables. On a terminal they are aligned by libsmartcols. Elsewhere each row is a line, with tabs
// between the cells, without headings and without cuts.
//
// A long list is printed in pieces by table_flush, so that the first rows appear at once and memory
// stays small. Therefore columns have fixed widths.

#pragma once

#include "cli.h"

typedef enum ColumnKind {
    COLUMN_LEFT,
    COLUMN_RIGHT, // numbers
    COLUMN_REST,  // takes the remaining width; cut with "…"
} ColumnKind;

typedef struct Column {
    const char *name;
    ColumnKind kind;
    int width;         // on a terminal, at least that of the name; for COLUMN_REST the minimum
    int terminal_from; // left out on a terminal with fewer columns
} Column;

enum { TABLE_COLUMNS_MAX = 16 };

typedef struct Table Table;

// Opens a table. `columns` (the last has no name) is borrowed until table_closep. Returns NULL when
// out of memory; the other functions then do nothing.
Table *table_open(const Cli *cli, const Column *columns);

// Adds the next cell of the row; after the last cell a new row begins. Copies `text`.
void table_cell(Table *table, const char *text);

// Adds a cell that differs between a terminal and a pipe.
void table_cell_two(Table *table, const char *on_terminal, const char *in_pipe);

// Prints the rows that were added and drops them.
void table_flush(Table *table);

// Flushes and frees the table. For CLEANUP.
void table_closep(Table **table);
