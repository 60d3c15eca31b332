// The report: targets met, missed and not in the run, and where tine is not the fastest.

#include <stdio.h>
#include <stdlib.h>

#include "harness.h"

static const char RESULTS[] =
    "{'version': 1, 'date': '2026-01-01T00:00:00Z', 'commit': 'abc', 'is_quick': false,"
    " 'seconds': 1, 'machine': {'processor': 'P', 'processors': 2, 'memory_mib': 1, 'kernel': 'K',"
    " 'file_system': 'ext4', 'system': 'D', 'load': 0.1},"
    " 'systems': [{'name': 'tine', 'about': 'x', 'durability': 'power cut', 'is_limit': false},"
    "  {'name': 'tine-direct', 'about': 'x', 'durability': 'power cut', 'is_limit': false},"
    "  {'name': 'lmdb', 'about': 'x', 'durability': 'power cut', 'is_limit': true},"
    "  {'name': 'nng-echo', 'about': 'x', 'durability': 'none', 'is_limit': true},"
    "  {'name': 'sqlite-normal', 'about': 'x', 'durability': 'process', 'is_limit': false},"
    "  {'name': 'redis', 'about': 'x', 'durability': 'process', 'is_limit': false}],"
    " 'workloads': [{'name': 'fork-chain-bytes', 'about': 'x'},"
    "  {'name': 'fork-chain-decoded', 'about': 'x'}, {'name': 'append', 'about': 'x'}],"
    " 'cells': [%s]}";

static void write_cell(FILE *file, const char *workload, const char *name, const char *system,
                       double median_us)
{
    fprintf(
        file,
        "{'workload': '%s', 'case': '%s', 'parameters': {'bytes': 1}, 'system': '%s', 'count': 1,"
        " 'median_us': %g, 'p99_us': null, 'p999_us': null, 'per_second': 1,"
        " 'client_cpu_us': 1, 'server_cpu_us': null, 'written_bytes': 7,"
        " 'disk_bytes_per_message': null,"
        " 'client_rss_kib': null, 'server_rss_kib': null}",
        workload, name, system, median_us);
}

// Runs the report on these results; true if a line of it has each of two texts.
static bool report_has(const char *cells, const char *first, const char *second)
{
    char command[2048], path[300];
    snprintf(path, sizeof(path), "%s/results", test_dir());
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    fprintf(file, RESULTS, cells);
    CHECK_EQ(fclose(file), 0);
    snprintf(command, sizeof(command),
             "tr \"'\" '\"' <'%s' >'%s.json' && %s/bench/report '%s.json' | grep -F '%s' | "
             "grep -qF '%s'",
             path, path, SOURCE_DIR, path, first, second);
    return system(command) == 0;
}

static void cells_of(char *out, size_t size, double sqlite_us, double redis_us)
{
    static const char name[] = "forks=8 messages=25 bytes=1024";
    FILE *file = fmemopen(out, size, "w");
    CHECK(file != NULL);
    write_cell(file, "fork-chain-decoded", name, "tine", 100);
    fputs(", ", file);
    write_cell(file, "fork-chain-decoded", name, "sqlite-normal", sqlite_us);
    fputs(", ", file);
    write_cell(file, "fork-chain-decoded", name, "redis", redis_us);
    fputs(", ", file);
    write_cell(file, "append", "bytes=512", "tine", 300);
    fputs(", ", file);
    write_cell(file, "append", "bytes=512", "sqlite-normal", 20);
    CHECK_EQ(fclose(file), 0);
}

TEST(a_target_is_met_or_missed_by_its_ratio)
{
    if (system("python3 -c '' 2>/dev/null") != 0) SKIP("no python3");
    char cells[4096] = "";
    cells_of(cells, sizeof(cells), 250, 190);
    CHECK(report_has(cells, "SQL and JSON / by RPC, decoded |", "| 2.50 | >= 2 | met |"));
    CHECK(report_has(cells, "| Redis / by RPC, both decoded |", "| 1.90 | >= 2 | **missed** |"));
}

TEST(a_target_that_was_not_measured_says_so)
{
    if (system("python3 -c '' 2>/dev/null") != 0) SKIP("no python3");
    char cells[4096] = "";
    cells_of(cells, sizeof(cells), 250, 190);
    CHECK(report_has(cells, "| the same by RPC / libnng echo of its size |", "not in this run"));
}

TEST(who_is_faster_is_named_and_marked_if_it_survives_less)
{
    if (system("python3 -c '' 2>/dev/null") != 0) SKIP("no python3");
    char cells[4096] = "";
    cells_of(cells, sizeof(cells), 90, 190);
    CHECK(report_has(cells, "sqlite-normal 20.00 us, which survives less", "tine 300.0 us"));
    CHECK(report_has(cells, "8 messages=25 bytes=1024: sqlite-normal 90.00 us", "tine 100.0 us"));
}

static void chain_cells(char *out, size_t size)
{
    static const char nine[] = "forks=8 messages=25 bytes=1024";
    static const char many[] = "forks=64 messages=25 bytes=1024";
    FILE *file = fmemopen(out, size, "w");
    CHECK(file != NULL);
    write_cell(file, "fork-chain-bytes", nine, "sqlite-normal", 120);
    fputs(", ", file);
    write_cell(file, "fork-chain-decoded", nine, "sqlite-normal", 250);
    fputs(", ", file);
    write_cell(file, "fork-chain-bytes", nine, "tine-direct", 9);
    fputs(", ", file);
    write_cell(file, "fork-chain-decoded", nine, "tine-direct", 50);
    fputs(", ", file);
    write_cell(file, "fork-chain-bytes", many, "tine-direct", 130);
    fputs(", ", file);
    write_cell(file, "fork-chain-bytes", nine, "lmdb", 4.5);
    fputs(", ", file);
    write_cell(file, "fork-chain-bytes", many, "lmdb", 65);
    CHECK_EQ(fclose(file), 0);
}

TEST(what_is_decoded_is_divided_by_what_is_decoded_too)
{
    if (system("python3 -c '' 2>/dev/null") != 0) SKIP("no python3");
    char cells[4096] = "";
    chain_cells(cells, sizeof(cells));
    CHECK(report_has(cells, "decoded / direct, bytes |", "| 27.78 | >= 20 | met |"));
    CHECK(report_has(cells, "SQL / direct, both bytes |", "| 13.33 |  |  |"));
    CHECK(report_has(cells, "direct, both decoded |", "| 5.00 |  |  |"));
}

TEST(a_session_of_a_long_chain_is_compared_with_one_of_nine_and_with_the_walk)
{
    if (system("python3 -c '' 2>/dev/null") != 0) SKIP("no python3");
    char cells[4096] = "";
    chain_cells(cells, sizeof(cells));
    CHECK(report_has(cells, "| a session of a chain of 65 / of 9, direct |",
                     "| 2.00 | <= 1.3 | **missed** |"));
    CHECK(report_has(cells, "| the same, each over its bare walk |", "| 1.00 |  |  |"));
    CHECK(report_has(cells, "| a session of a chain of 1001 / of 9, direct |", "not in this run"));
}

// bench/record on a document of the test's own; what it then holds.
static bool recorded(const char *part, const char *document)
{
    char command[2048], cells[4096] = "";
    cells_of(cells, sizeof(cells), 250, 190);
    (void)report_has(cells, "", ""); // leaves results.json
    snprintf(command, sizeof(command),
             "cd '%s' && printf '%s' >R.md && %s/bench/record --from results.json --into R.md %s "
             "2>record.log",
             test_dir(), document, SOURCE_DIR, part);
    return system(command) == 0;
}

static bool document_has(const char *text)
{
    char command[2048];
    snprintf(command, sizeof(command), "grep -qF '%s' '%s/R.md'", text, test_dir());
    return system(command) == 0;
}

TEST(a_part_is_recorded_in_its_place_and_replaces_what_was_there)
{
    if (system("python3 -c '' 2>/dev/null") != 0) SKIP("no python3");
    CHECK(recorded("engine", "before\\n<!-- engine -->\\nold\\n<!-- end of engine -->\\nafter\\n"));
    CHECK(document_has("before"));
    CHECK(document_has("after"));
    CHECK(document_has("fork-chain-decoded")); // the output, word by word
    CHECK(!document_has("old"));
}

TEST(the_figures_of_a_run_are_recorded_with_its_plots)
{
    if (system("python3 -c '' && gnuplot --version >/dev/null") != 0)
        SKIP("no python3, no gnuplot");
    CHECK(recorded("tine-bench", "<!-- tine-bench -->\\n<!-- end of tine-bench -->\\nafter\\n"));
    CHECK(document_has("### Targets"));
    CHECK(document_has("### Plots"));
    CHECK(document_has("### Every figure"));
    CHECK(document_has("#### fork-chain-decoded"));
    CHECK(document_has("after"));
}

TEST(a_part_without_a_place_is_not_recorded)
{
    if (system("python3 -c '' 2>/dev/null") != 0) SKIP("no python3");
    CHECK(!recorded("engine", "no place\\n"));
    CHECK(document_has("no place"));
    CHECK(!document_has("fork-chain"));
}
