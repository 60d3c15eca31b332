// bench_engine: the engine's own figures against bare LMDB, in one process.
//
//     bench_engine [--quick] [--only NAME] [--directory DIR]

#include "rows.h"

int main(int argc, char **argv)
{
    Options options;
    options_begin(argc, argv, &options);
    bench_history(&options);
    bench_list(&options);
    bench_append(&options);
    bench_part(&options);
    bench_value(&options);
    options_end(&options);
    return 0;
}
