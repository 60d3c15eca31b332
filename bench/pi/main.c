// bench_pi: imports a session file of pi into a durable store in this process, and puts the same
// rows by lmdb.h alone for comparison.
//
//     bench_pi [--quick] [--only NAME] [--directory DIR]
//
// The file has 50 MB (a tenth with --quick): turns of a user, an agent and a tool, lines of 2 KiB
// in the median and 64 KiB at most, with some branches. The comparison writes every row of the
// imported store to a new file, with one durable transaction for 512 entries, the
// best that the import can do.

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "bench.h"
#include "importers/pi/pi_import.h"
#include "kv/kv.h"
#include "os/clock.h"

enum {
    FILE_BYTES = 50 * 1000 * 1000,
    QUICK_FACTOR = 10,
    LINE_BYTES_MAX = 64 * 1024 - 1024,
    LINE_BYTES_MEDIAN = 2048,
    ENTRIES_PER_TXN = 512,
    BRANCH_EVERY = 2000, // entries; each costs the import a call and a commit
    ROUNDS = 3,
};

static const double TARGET = 0.5;

static size_t write_entry(FILE *file, Random *random, size_t number, size_t parent)
{
    static char text[LINE_BYTES_MAX + 1];
    // Half of the lines are shorter than the median; the others have up to 32 times as much.
    size_t size = random_below(random, LINE_BYTES_MEDIAN);
    if (random_below(random, 2)) size = LINE_BYTES_MEDIAN << random_below(random, 3);
    if (random_below(random, 500) == 0) size = LINE_BYTES_MAX - 2048;
    memset(text, 'a' + (int)(number % 26), size);
    text[size] = '\0';
    char parent_text[16] = "null";
    if (number > 0) snprintf(parent_text, sizeof(parent_text), "\"%08zx\"", parent);
    static const char *const MESSAGES[] = {
        "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"%s\"}],\"timestamp\":%zu}",
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"%s\"},{\"type\":"
        "\"toolCall\",\"id\":\"t\",\"name\":\"bash\",\"arguments\":{\"command\":\"ls\"}}],\"api\":"
        "\"a\",\"provider\":\"p\",\"model\":\"m\",\"usage\":{\"input\":1,\"output\":2,"
        "\"cacheRead\":3,\"cacheWrite\":4,\"totalTokens\":10,\"cost\":{\"total\":0.001}},"
        "\"stopReason\":\"toolUse\",\"timestamp\":%zu}",
        "{\"role\":\"toolResult\",\"toolCallId\":\"t\",\"toolName\":\"bash\",\"content\":["
        "{\"type\":\"text\",\"text\":\"%s\"}],\"isError\":false,\"timestamp\":%zu}",
    };
    int bytes = fprintf(file,
                        "{\"type\":\"message\",\"id\":\"%08zx\",\"parentId\":%s,"
                        "\"timestamp\":\"2025-11-20T10:00:00.000Z\",\"message\":",
                        number, parent_text);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    bytes += fprintf(file, MESSAGES[number % 3], text, (size_t)1763632800000 + number);
#pragma GCC diagnostic pop
    return (size_t)(bytes + fprintf(file, "}\n"));
}

// Returns the number of entries.
static size_t write_file(FILE *file, size_t bytes_min)
{
    Random random;
    random_seed(&random, 1);
    fputs("{\"type\":\"session\",\"version\":3,\"id\":\"bench\",\"cwd\":\"/p\"}\n", file);
    size_t bytes = 0, count = 0, parent = 0;
    while (bytes < bytes_min) {
        bytes += write_entry(file, &random, count, parent);
        bool is_branch = random_below(&random, BRANCH_EVERY) == 0;
        parent = is_branch ? random_below(&random, count + 1) : count;
        count++;
    }
    require(fflush(file) == 0, "the file cannot be written");
    return count;
}

static double import_seconds(FILE *file, const char *path)
{
    char url[600];
    Tine *tine = NULL;
    TineStatus status;
    Importer importer;
    snprintf(url, sizeof(url), "embedded:%s", path);
    bench_remove(path);
    require(tine_open(url, &status, &tine) == 0, "%s", status.message);
    importer_init(&importer, tine, NULL);
    rewind(file);
    int64_t start = clock_monotonic_ns();
    require(pi_import(&importer, file, "bench.jsonl") == 0, "the import failed");
    double seconds = (double)(clock_monotonic_ns() - start) / 1e9;
    tine_close(tine);
    return seconds;
}

typedef struct Copy {
    MDB_env *from, *to;
    MDB_txn *read, *write;
    MDB_dbi tree;
    size_t rows, rows_per_txn;
} Copy;

static void copy_commit(Copy *copy)
{
    require(mdb_txn_commit(copy->write) == 0, "mdb_txn_commit");
    require(mdb_txn_begin(copy->to, NULL, 0, &copy->write) == 0, "mdb_txn_begin");
}

// Calls `work` for each row.
static void each_row(Copy *copy, void (*work)(Copy *copy, MDB_val *, MDB_val *))
{
    MDB_cursor *rows;
    MDB_val key = {1, (uint8_t[]){KV_TABLE_BYTE}}, value;
    require(mdb_dbi_open(copy->read, NULL, 0, &copy->tree) == 0, "mdb_dbi_open");
    if (copy->write) {
        require(mdb_dbi_open(copy->write, NULL, 0, &copy->tree) == 0, "mdb_dbi_open");
    }
    require(mdb_cursor_open(copy->read, copy->tree, &rows) == 0, "mdb_cursor_open");
    for (int failed = mdb_cursor_get(rows, &key, &value, MDB_SET_RANGE); !failed;
         failed = mdb_cursor_get(rows, &key, &value, MDB_NEXT)) {
        work(copy, &key, &value);
    }
    mdb_cursor_close(rows);
}

static void count_row(Copy *copy, MDB_val *key, MDB_val *value)
{
    (void)key;
    (void)value;
    copy->rows++;
}

static void put_row(Copy *copy, MDB_val *key, MDB_val *value)
{
    require(mdb_put(copy->write, copy->tree, key, value, 0) == 0, "mdb_put");
    if (++copy->rows % copy->rows_per_txn == 0) copy_commit(copy);
}

static MDB_env *env_open(const char *path, unsigned flags)
{
    MDB_env *env;
    require(mdb_env_create(&env) == 0, "mdb_env_create");
    mdb_env_set_mapsize(env, (size_t)1 << 36);
    require(mdb_env_open(env, path, MDB_NOTLS | flags, 0600) == 0, "mdb_env_open %s", path);
    return env;
}

static double bare_seconds(const char *from, const char *to, size_t entry_count)
{
    Copy copy = {.from = env_open(from, MDB_RDONLY)};
    bench_remove(to);
    require(mkdir(to, 0700) == 0 || errno == EEXIST, "mkdir %s", to);
    copy.to = env_open(to, 0);
    require(mdb_txn_begin(copy.from, NULL, MDB_RDONLY, &copy.read) == 0, "mdb_txn_begin");
    each_row(&copy, count_row);
    copy.rows_per_txn = copy.rows / (entry_count / ENTRIES_PER_TXN + 1) + 1;
    copy.rows = 0;
    int64_t start = clock_monotonic_ns();
    require(mdb_txn_begin(copy.to, NULL, 0, &copy.write) == 0, "mdb_txn_begin");
    each_row(&copy, put_row);
    require(mdb_txn_commit(copy.write) == 0, "mdb_txn_commit");
    double seconds = (double)(clock_monotonic_ns() - start) / 1e9;
    mdb_txn_abort(copy.read);
    mdb_env_close(copy.from);
    mdb_env_close(copy.to);
    return seconds;
}

int main(int argc, char **argv)
{
    Options options;
    char store[512], bare[512];
    double import_times[ROUNDS], bare_times[ROUNDS];
    options_begin(argc, argv, &options);
    bench_path(&options, "pi", store, sizeof(store));
    bench_path(&options, "pi-bare", bare, sizeof(bare));
    size_t bytes = options.is_quick ? FILE_BYTES / QUICK_FACTOR : FILE_BYTES;
    FILE *file = tmpfile();
    require(file != NULL, "tmpfile");
    size_t count = write_file(file, bytes);
    for (size_t i = 0; i < ROUNDS; i++) {
        import_times[i] = import_seconds(file, store);
        bare_times[i] = bare_seconds(store, bare, count);
    }
    double seconds = median_of(import_times, ROUNDS), bare_median = median_of(bare_times, ROUNDS);
    report_figure("pi_import_mb_per_s", (double)bytes / 1e6 / seconds, "%zu MB, %zu entries",
                  bytes / 1000000, count);
    report_figure("pi_import_entries_per_s", (double)count / seconds, "%.2f s", seconds);
    report_ratio_at_least("pi_import_rate", bare_median / seconds, TARGET,
                          "import %.2f s, the same rows bare %.2f s", seconds, bare_median);
    fclose(file);
    bench_remove(store);
    bench_remove(bare);
    options_end(&options);
    return 0;
}
