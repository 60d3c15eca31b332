// Prints tables.

#include "table.h"

#include <libsmartcols.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 2 }; // columns between two cells

struct Table {
    const Cli *cli;
    const Column *columns;        // borrowed
    size_t column_count, next;    // `next` is the column of the next cell
    size_t rest_width;            // of each COLUMN_REST
    struct libscols_table *lines; // owned; NULL in a pipe
    struct libscols_line *line;   // the current row
};

static bool is_left_out(const Table *table, size_t column)
{
    return table->cli->width < table->columns[column].terminal_from;
}

static void find_widths(Table *table)
{
    int left = table->cli->width, rest_count = 0, least = 8;
    for (size_t i = 0; i < table->column_count; i++) {
        const Column *column = &table->columns[i];
        if (is_left_out(table, i)) continue;
        if (column->kind != COLUMN_REST) {
            left -= column->width;
        } else {
            rest_count++;
            if (column->width > least) least = column->width;
        }
        if (i > 0) left -= GAP;
    }
    int width = rest_count > 0 ? left / rest_count : 0;
    table->rest_width = (size_t)(width > least ? width : least);
}

static size_t width_of(const Table *table, size_t column)
{
    const Column *wanted = &table->columns[column];
    return wanted->kind == COLUMN_REST ? table->rest_width : (size_t)wanted->width;
}

static struct libscols_table *lines_new(const Table *table)
{
    struct libscols_table *lines = scols_new_table();
    if (!lines) return NULL;
    scols_table_enable_colors(lines, table->cli->out.has_colour);
    scols_table_set_column_separator(lines, "  ");
    scols_table_set_termforce(lines, SCOLS_TERMFORCE_ALWAYS);
    // This keeps the library from shrinking our widths.
    scols_table_set_termwidth(lines, 16 * 1024);
    for (size_t i = 0; i < table->column_count; i++) {
        const Column *wanted = &table->columns[i];
        int flags = SCOLS_FL_STRICTWIDTH;
        if (wanted->kind == COLUMN_RIGHT) flags |= SCOLS_FL_RIGHT;
        if (is_left_out(table, i)) flags |= SCOLS_FL_HIDDEN;
        struct libscols_column *column =
            scols_table_new_column(lines, wanted->name, (double)width_of(table, i), flags);
        if (column && table->cli->out.has_colour) {
            scols_cell_set_color(scols_column_get_header(column), "bold");
        }
    }
    return lines;
}

Table *table_open(const Cli *cli, const Column *columns)
{
    Table *table = calloc(1, sizeof(Table));
    if (!table) return NULL;
    table->cli = cli;
    table->columns = columns;
    while (columns[table->column_count].name)
        table->column_count++;
    if (!cli->is_terminal) return table;
    find_widths(table);
    scols_init_debug(0);
    table->lines = lines_new(table);
    if (table->lines) return table;
    free(table);
    return NULL;
}

static void add_to_lines(Table *table, const char *text)
{
    size_t columns_max = width_of(table, table->next);
    char *safe = print_line(text, PRINT_TERMINAL, columns_max);
    if (table->next == 0) table->line = scols_table_new_line(table->lines, NULL);
    if (table->line && safe) (void)scols_line_set_data(table->line, table->next, safe);
    free(safe);
}

void table_cell(Table *table, const char *text)
{
    if (!table) return;
    if (table->lines) {
        add_to_lines(table, text);
    } else {
        bool is_last = table->next + 1 == table->column_count;
        print(&table->cli->out, is_last ? "%s\n" : "%s\t", text);
    }
    table->next = (table->next + 1) % table->column_count;
}

void table_cell_two(Table *table, const char *on_terminal, const char *in_pipe)
{
    if (table) table_cell(table, table->lines ? on_terminal : in_pipe);
}

void table_flush(Table *table)
{
    if (!table || !table->lines || scols_table_get_nlines(table->lines) == 0) return;
    (void)scols_print_table(table->lines);
    scols_table_remove_lines(table->lines);
    scols_table_enable_noheadings(table->lines, 1);
    print_flush(&table->cli->out);
}

void table_closep(Table **table)
{
    if (!*table) return;
    table_flush(*table);
    if ((*table)->lines) scols_unref_table((*table)->lines);
    free(*table);
}
