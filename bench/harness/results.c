// Writing results.json.

#include "results.h"

#include <math.h>
#include <stdlib.h>

#include "machine.h"
#include "workload.h"

void case_name(const Parameter *parameters, char *out, size_t out_bytes_max)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < PARAMETERS_MAX && parameters[i].name && used < out_bytes_max; i++) {
        int size = snprintf(out + used, out_bytes_max - used, "%s%s=%.15g", i ? " " : "",
                            parameters[i].name, parameters[i].value);
        used += size > 0 ? (size_t)size : 0;
    }
}

static Figures no_figures(void)
{
    Samples none = {.values = NULL};
    return figures_of(&none);
}

Cell *results_add(Results *results, const char *workload, const Parameter *parameters,
                  const System *system)
{
    size_t size = (results->count + 1) * sizeof(Cell);
    results->cells = realloc(results->cells, size);
    require(results->cells != NULL, "out of memory");
    Cell *cell = &results->cells[results->count++];
    *cell = (Cell){.workload = workload,
                   .system = system,
                   .figures = no_figures(),
                   .per_second = NAN,
                   .client_cpu_us = NAN,
                   .server_cpu_us = NAN,
                   .written_bytes = NAN,
                   .disk_bytes_per_message = NAN,
                   .client_rss_kib = NAN,
                   .server_rss_kib = NAN};
    for (size_t i = 0; i < PARAMETERS_MAX; i++)
        cell->parameters[i] = parameters[i];
    case_name(parameters, cell->name, sizeof(cell->name));
    return cell;
}

void results_free(Results *results)
{
    free(results->cells);
    *results = (Results){.cells = NULL};
}

void json_string(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\') {
            fprintf(file, "\\%c", byte);
        } else if (byte < 0x20) {
            fprintf(file, "\\u%04x", byte);
        } else {
            fputc(byte, file);
        }
    }
    fputc('"', file);
}

void json_number(FILE *file, double value)
{
    if (isfinite(value)) {
        fprintf(file, "%.15g", value);
    } else {
        fputs("null", file);
    }
}

static void member(FILE *file, const char *name, double value)
{
    fprintf(file, ", \"%s\": ", name);
    json_number(file, value);
}

static void text_member(FILE *file, const char *name, const char *value)
{
    fprintf(file, ", \"%s\": ", name);
    json_string(file, value);
}

static void write_figures(FILE *file, const Figures *figures)
{
    member(file, "count", (double)figures->count);
    member(file, "mean_us", figures->mean_us);
    member(file, "min_us", figures->min_us);
    member(file, "median_us", figures->median_us);
    member(file, "p90_us", figures->p90_us);
    member(file, "p99_us", figures->p99_us);
    member(file, "p999_us", figures->p999_us);
    member(file, "max_us", figures->max_us);
    fputs(", \"quantiles_us\": [", file);
    for (size_t i = 0; i < QUANTILE_COUNT; i++) {
        fprintf(file, "%s[%.15g, ", i ? ", " : "", QUANTILES[i]);
        json_number(file, figures->quantiles_us[i]);
        fputc(']', file);
    }
    fputc(']', file);
}

static void write_cell(FILE *file, const Cell *cell)
{
    fputs("    {\"workload\": ", file);
    json_string(file, cell->workload);
    text_member(file, "case", cell->name);
    fputs(", \"parameters\": {", file);
    for (size_t i = 0; i < PARAMETERS_MAX && cell->parameters[i].name; i++) {
        if (i) fputs(", ", file);
        json_string(file, cell->parameters[i].name);
        fputs(": ", file);
        json_number(file, cell->parameters[i].value);
    }
    fputs("}", file);
    text_member(file, "system", cell->system->name);
    if (cell->skipped[0]) {
        text_member(file, "skipped", cell->skipped);
    } else {
        write_figures(file, &cell->figures);
        member(file, "per_second", cell->per_second);
        member(file, "client_cpu_us", cell->client_cpu_us);
        member(file, "server_cpu_us", cell->server_cpu_us);
        member(file, "written_bytes", cell->written_bytes);
        member(file, "disk_bytes_per_message", cell->disk_bytes_per_message);
        member(file, "client_rss_kib", cell->client_rss_kib);
        member(file, "server_rss_kib", cell->server_rss_kib);
    }
    fputc('}', file);
}

static void write_systems(FILE *file)
{
    fputs("  \"systems\": [\n", file);
    for (size_t i = 0; i < system_count(); i++) {
        const System *system = system_at(i);
        fputs("    {\"name\": ", file);
        json_string(file, system->name);
        text_member(file, "about", system->about);
        text_member(file, "durability", durability_text(system->durability));
        fprintf(file, ", \"is_limit\": %s}%s\n", system->is_limit ? "true" : "false",
                i + 1 < system_count() ? "," : "");
    }
    fputs("  ],\n", file);
}

static void write_workloads(FILE *file)
{
    fputs("  \"workloads\": [\n", file);
    for (size_t i = 0; i < workload_count(); i++) {
        fputs("    {\"name\": ", file);
        json_string(file, workload_at(i)->name);
        text_member(file, "about", workload_at(i)->about);
        fprintf(file, "}%s\n", i + 1 < workload_count() ? "," : "");
    }
    fputs("  ],\n", file);
}

void results_write(const Results *results, bool is_quick, const char *path)
{
    FILE *file = fopen(path, "w");
    require(file != NULL, "cannot write %s", path);
    fputs("{\n  \"version\": 1,\n", file);
    machine_write(file);
    fprintf(file, "  \"is_quick\": %s,\n  \"seconds\": %.1f,\n", is_quick ? "true" : "false",
            results->seconds);
    write_systems(file);
    write_workloads(file);
    fputs("  \"cells\": [\n", file);
    for (size_t i = 0; i < results->count; i++) {
        write_cell(file, &results->cells[i]);
        fputs(i + 1 < results->count ? ",\n" : "\n", file);
    }
    fputs("  ]\n}\n", file);
    require(fclose(file) == 0, "cannot write %s", path);
}
