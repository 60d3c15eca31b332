// bench_engine: the engine's own figures against bare LMDB, in one process.
//
//     bench_engine [--quick] [--only NAME] [--directory DIR]
//
// DIR must be on the disk that is to be measured; a subdirectory of it is made and removed.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"

static void usage(void)
{
    fprintf(stderr, "usage: bench_engine [--quick] [--only NAME] [--directory DIR]\n");
    exit(2);
}

int main(int argc, char **argv)
{
    static char directory[256];
    const char *parent = ".";
    Options options = {.is_quick = false};
    for (int i = 1; i < argc; i++) {
        bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--quick") == 0) {
            options.is_quick = true;
        } else if (strcmp(argv[i], "--only") == 0 && has_value) {
            options.only = argv[++i];
        } else if (strcmp(argv[i], "--directory") == 0 && has_value) {
            parent = argv[++i];
        } else {
            usage();
        }
    }
    snprintf(directory, sizeof(directory), "%s/bench-engine-%ld", parent, (long)getpid());
    require(mkdir(directory, 0700) == 0, "cannot create %s", directory);
    options.directory = directory;

    printf("%-44s %8s   %s\n", "row", "figure", "target");
    bench_history(&options);
    bench_list(&options);
    bench_append(&options);
    bench_value(&options);
    rmdir(directory);
    return 0;
}
