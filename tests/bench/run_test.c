// A run: whose turn it is, what must be equal, and what is written down of it.

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake.h"
#include "harness.h"

WORKLOAD(reading) = {.name = "reading", .about = "reads"};

static void fill(Lane *lane)
{
    lane->system->create_session(lane->client, &(SessionSpec){.slug = "s"}, &lane->ids[0]);
    lane_append(lane, &lane->ids[0], 0, 7, &lane->ids[1]);
}

static bool can_read(const System *system)
{
    return system->history != NULL;
}

static void read_history(Lane *lane)
{
    lane->system->history(lane->client, &lane->ids[0], &lane->tally);
}

static Run run_of(const char *only, const char *systems)
{
    return (Run){.options = {test_dir(), only, systems, /* is_quick= */ true},
                 .workload = &workload_reading};
}

static const Case two_calls = {.parameters = {{"depth", 8}, {"bytes", 1024}},
                               .can = can_read,
                               .fill = fill,
                               .call = read_history,
                               .calls = 2};

TEST(systems_take_turns_and_each_round_begins_with_the_next)
{
    Run run = run_of(NULL, NULL);
    compare(&run, &two_calls);
    CHECK_EQ(call_count, 20); // a round that does not count, and four
    CHECK(strncmp(calls,
                  "aabb"
                  "bbaa"
                  "aabb"
                  "bbaa"
                  "aabb",
                  20) == 0);
    results_free(&run.results);
}

TEST(the_first_round_does_not_count)
{
    Run run = run_of(NULL, "a");
    compare(&run, &two_calls);
    CHECK_EQ(call_count, 10);
    CHECK_EQ(run.results.count, 1);
    CHECK_EQ(run.results.cells[0].figures.count, 8);
    results_free(&run.results);
}

TEST(a_system_that_cannot_is_said_to_be_left_out)
{
    Run run = run_of(NULL, "c,a");
    compare(&run, &two_calls);
    CHECK_EQ(run.results.count, 2);
    CHECK_STR(run.results.cells[0].system->name, "c");
    CHECK_STR(run.results.cells[0].skipped, "it has no such call");
    CHECK_STR(run.results.cells[1].skipped, "");
    results_free(&run.results);
}

TEST(who_reads_as_another_one_has_no_part_in_reading)
{
    Run run = run_of(NULL, "a,b");
    Case what = two_calls;
    what.is_reading = true; // b reads as a does (fake.c)
    compare(&run, &what);
    CHECK_STR(run.results.cells[0].system->name, "b");
    CHECK_STR(run.results.cells[0].skipped, "it reads as another one does that is in it");
    CHECK_EQ(run.results.cells[1].figures.count, 8);
    results_free(&run.results);
}

TEST(rounds_are_as_many_as_were_asked_for)
{
    Run run = run_of(NULL, "a");
    run.options.rounds = 2;
    compare(&run, &two_calls);
    CHECK_EQ(run.results.cells[0].figures.count, 4);
    results_free(&run.results);
}

TEST(only_takes_the_cases_that_have_it_in_their_path)
{
    Run run = run_of("reading/depth=8", NULL);
    compare(&run, &two_calls);
    CHECK_EQ(run.results.count, 3);
    results_free(&run.results);
    run = run_of("writing", NULL);
    compare(&run, &two_calls);
    CHECK_EQ(run.results.count, 0);
}

static void read_differently(void)
{
    Run run = run_of(NULL, NULL);
    text_bytes_of_b = 8;
    compare(&run, &two_calls);
}

TEST(systems_that_read_different_texts_have_no_figures)
{
    CHECK(fails(read_differently));
}

TEST(names_are_taken_whole)
{
    CHECK(names_have(NULL, "a"));
    CHECK(names_have("a,bc", "a"));
    CHECK(names_have("a,bc", "bc"));
    CHECK(!names_have("a,bc", "b"));
    CHECK(!names_have("a,bc", "c"));
    CHECK(!names_have("", "a"));
}

static void fill_and_count(Lane *lane)
{
    lane->system->append(lane->client, &lane->ids[0], NULL, NULL);
    lane->index++;
}

TEST(clients_are_processes_that_call_for_as_long_as_a_turn)
{
    clients_begin();
    Run run = run_of(NULL, "a,b");
    Case what = two_calls;
    what.call = fill_and_count;
    what.calls = 0;
    what.processes = 3;
    compare(&run, &what);
    CHECK_EQ(run.results.count, 2);
    CHECK_EQ(call_count, 0); // none of it in this process
    CHECK(run.results.cells[0].figures.count > 0);
    CHECK(run.results.cells[1].per_second > 0);
    CHECK(run.results.cells[1].client_rss_kib > 0);
    results_free(&run.results);
    clients_end();
}

enum { WRITTEN_BYTES = 64 << 10 };

// A new file each time, so that few of them ever reach the disk.
static void write_pages(Lane *lane)
{
    static const char pages[WRITTEN_BYTES];
    char path[300];
    snprintf(path, sizeof(path), "%s/%s-%zu", test_dir(), lane->system->name, lane->index);
    (void)remove(path);
    FILE *file = fopen(path, "w");
    CHECK(file && fwrite(pages, 1, sizeof(pages), file) == sizeof(pages));
    CHECK_EQ(fclose(file), 0);
}

static bool counts_written_bytes(void)
{
    double before = process_written_bytes(getpid());
    write_pages(&(Lane){.system = system_at(0)});
    return process_written_bytes(getpid()) - before >= WRITTEN_BYTES;
}

TEST(what_a_call_has_had_written_to_the_disk_is_counted)
{
    if (!counts_written_bytes()) SKIP("no count of what is written here, or no disk");
    Run run = run_of(NULL, "a,b");
    Case what = two_calls;
    compare(&run, &what);
    CHECK_EQ(run.results.cells[0].written_bytes, 0);
    what.call = write_pages;
    compare(&run, &what);
    CHECK(run.results.cells[2].written_bytes >= WRITTEN_BYTES);
    CHECK(run.results.cells[2].written_bytes < 2 * WRITTEN_BYTES); // what the other wrote is not in
    results_free(&run.results);
}

TEST(what_clients_write_is_counted)
{
    if (!counts_written_bytes()) SKIP("no count of what is written here, or no disk");
    clients_begin();
    Run run = run_of(NULL, "a");
    Case what = two_calls;
    what.call = write_pages;
    what.calls = 0;
    what.processes = 2;
    compare(&run, &what);
    CHECK(run.results.cells[0].written_bytes >= WRITTEN_BYTES);
    CHECK(run.results.cells[0].written_bytes < 2 * WRITTEN_BYTES);
    results_free(&run.results);
    clients_end();
}

static void write_results(const char *path)
{
    Run run = run_of(NULL, NULL);
    compare(&run, &two_calls);
    results_write(&run.results, /* is_quick= */ true, path);
    results_free(&run.results);
}

static bool succeeds(const char *format, const char *path)
{
    char command[1024];
    snprintf(command, sizeof(command), format, path, path);
    return system(command) == 0;
}

TEST(results_are_json_with_all_that_the_report_needs)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/results.json", test_dir());
    write_results(path);
    CHECK(succeeds("jq -e '.version == 1 and (.systems | length) == 3 and (.cells | length) == 3"
                   " and .machine.processors > 0 and (.date | length) == 20 and .is_quick' '%s'",
                   path));
    CHECK(succeeds("jq -e '.systems[1].about == \"the \\\"second\\\" one\"' '%s'", path));
    CHECK(succeeds("jq -e '.cells[] | select(.system == \"a\") | .case == \"depth=8 bytes=1024\""
                   " and .parameters.depth == 8 and .count == 8 and .median_us >= 0"
                   " and .p99_us == null and .server_rss_kib == null"
                   " and (.quantiles_us | length) == 15' '%s'",
                   path));
    CHECK(
        succeeds("jq -e '.cells[] | select(.system == \"c\") | .skipped | length > 0' '%s'", path));
}

TEST(the_report_has_every_cell_and_says_who_is_left_out)
{
    if (system("python3 -c '' 2>/dev/null") != 0) SKIP("no python3");
    char path[300];
    snprintf(path, sizeof(path), "%s/results.json", test_dir());
    write_results(path);
    CHECK(succeeds(SOURCE_DIR "/bench/report '%s' >'%s.md'", path));
    CHECK(succeeds("grep -q '^| depth=8 bytes=1024 | a |' '%s.md' # %s", path));
    CHECK(succeeds("grep -q '^| depth=8 bytes=1024 | b |' '%s.md' # %s", path));
    CHECK(succeeds("grep -q 'Not in it: c (it has no such call)' '%s.md' # %s", path));
}
