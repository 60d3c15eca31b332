// tine-bench: the same work on many systems, in turns.
//
//     tine-bench [--list] [--quick] [--only TEXT] [--systems A,B] [--rounds N] [--out FILE]
//         [--directory DIR]
//
// --only takes cases whose "workload/case" contains the text. N: more rounds and more samples
// take longer. DIR must be on the disk that is to be
// measured. FILE is results.json, for bench/report and bench/plot.

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/clock.h"
#include "run.h"
#include "serve.h"

enum { ROUNDS_MAX = 1000 };

static void usage(void)
{
    fprintf(stderr, "usage: tine-bench [--list] [--quick] [--only TEXT] [--systems A,B]"
                    " [--rounds N] [--out FILE] [--directory DIR]\n");
    exit(2);
}

static char directory[PLACE_BYTES_MAX / 2]; // of this run's stores

static void remove_stores(void)
{
    tree_remove(directory);
}

static void list(void)
{
    printf("systems (what an acknowledged write survives)\n");
    for (size_t i = 0; i < system_count(); i++) {
        const System *system = system_at(i);
        printf("  %-22s %s (%s)\n", system->name, system->about,
               durability_text(system->durability));
    }
    printf("workloads\n");
    for (size_t i = 0; i < workload_count(); i++)
        printf("  %-22s %s\n", workload_at(i)->name, workload_at(i)->about);
    exit(0);
}

static void read_arguments(int count, char **arguments, RunOptions *out, const char **out_file)
{
    *out = (RunOptions){.directory = "."};
    *out_file = "results.json";
    for (int i = 1; i < count; i++) {
        bool has_value = i + 1 < count;
        if (strcmp(arguments[i], "--list") == 0) {
            list();
        } else if (strcmp(arguments[i], "--quick") == 0) {
            out->is_quick = true;
        } else if (strcmp(arguments[i], "--only") == 0 && has_value) {
            out->only = arguments[++i];
        } else if (strcmp(arguments[i], "--systems") == 0 && has_value) {
            out->systems = arguments[++i];
        } else if (strcmp(arguments[i], "--rounds") == 0 && has_value) {
            out->rounds = strtoul(arguments[++i], NULL, 10);
            if (out->rounds == 0 || out->rounds > ROUNDS_MAX) usage();
        } else if (strcmp(arguments[i], "--out") == 0 && has_value) {
            *out_file = arguments[++i];
        } else if (strcmp(arguments[i], "--directory") == 0 && has_value) {
            out->directory = arguments[++i];
        } else {
            usage();
        }
    }
}

static void require_known_systems(const char *names)
{
    char copy[512];
    snprintf(copy, sizeof(copy), "%s", names ? names : "");
    for (char *rest = copy, *name; (name = strsep(&rest, ","));) {
        bool is_known = *name == '\0';
        for (size_t i = 0; i < system_count(); i++)
            is_known |= strcmp(name, system_at(i)->name) == 0;
        require(is_known, "there is no system '%s'; see --list", name);
    }
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "--serve") == 0) {
        serve(argv[2], argv[3], argv[4]);
        return 1;
    }
    const char *out_file;
    Run run = {.workload = NULL};
    read_arguments(argc, argv, &run.options, &out_file);
    require_known_systems(run.options.systems);
    clients_begin();
    snprintf(directory, sizeof(directory), "%s/tine-bench-%ld", run.options.directory,
             (long)getpid());
    require(mkdir(directory, 0700) == 0, "cannot create %s", directory);
    run.options.directory = directory;
    atexit(remove_stores); // also when a require fails
    int64_t begin = clock_monotonic_ns();
    for (size_t i = 0; i < workload_count(); i++) {
        run.workload = workload_at(i);
        run.workload->run(&run);
    }
    run.results.seconds = (double)(clock_monotonic_ns() - begin) / 1e9;
    require(run.results.count > 0, "no case has '%s' in its name; see --list", run.options.only);
    results_write(&run.results, run.options.is_quick, out_file);
    fprintf(stderr, "%.0f s, %zu cells in %s\n", run.results.seconds, run.results.count, out_file);
    results_free(&run.results);
    clients_end();
    return 0;
}
