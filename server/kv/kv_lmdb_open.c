// Opens and closes the LMDB environment.
//
// LMDB has three traps here, all of them silent. A second open of the same file in one process
// drops the first one's locks: a registry refuses it. A child of fork shares its parent's locks and
// reader slots: it is kept out. And a map that is too small fails writes on a
// disk with room: the map is sized from the disk.

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/limits.h"
#include "kv/kv_lmdb.h"
#include "kv/kv_lmdb_flush.h"
#include "kv/kv_lmdb_pair.h"

// The map's size when the disk decides. The smallest is still tried where address space is scarce.
#define MAP_BYTES_SMALLEST (UINT64_C(1) << 30)
#define MAP_BYTES_DEFAULT (UINT64_C(64) << 30)
enum { MAP_DISK_FACTOR = 2 };

static Error open_registered(Kv *kv, const KvOptions *options, ErrorDetail *detail);
static Error check_files(Kv *kv, const KvOptions *options, ErrorDetail *detail);
static int identify_files(Kv *kv, const char *directory);
static bool is_same_file(KvFileId a, KvFileId b);
static uint64_t map_bytes_for_disk(const char *directory);
static int reserve_lock_file(const KvOptions *options);
static int check_unlocked(const KvOptions *options);
static int open_environment(Kv *kv, const KvOptions *options, size_t map_bytes);
static Error open_tables(Kv *kv, const KvOptions *options, ErrorDetail *detail);
static bool has_other_mark(MDB_txn *engine, const KvOptions *options);
static int fill_up_file(Kv *kv);
static void watch_forks(void);

static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
static Kv *registry; // every open Kv of this process

Error kv_open(const KvOptions *options, ErrorDetail *detail, Kv **out_kv)
{
    assert(options->table_count > 0 && options->table_count <= KV_TABLES_MAX);
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);

    Error error = kv_check_directory(options->directory, options->file_system_type, detail);
    if (error) return error;
    Kv *kv = aligned_alloc(_Alignof(Kv), sizeof *kv);
    if (!kv) return error_say(detail, ERROR_OUT_OF_MEMORY, "no memory to open the store");
    memset(kv, 0, sizeof *kv);
    kv->seam = options->seam;
    kv->is_read_only = options->read_only;
    kv->generation = process_generation();

    pthread_mutex_lock(&registry_mutex);
    error = open_registered(kv, options, detail);
    if (error && kv->env) mdb_env_close(kv->env);
    pthread_mutex_unlock(&registry_mutex);
    if (error) {
        free(kv);
        return error;
    }
    // Without the mutex: this waits for the writer of any process, and fork waits for the mutex.
    kv_clear_dead_readers(kv);
    error = flush_start(kv, options, detail);
    if (!error) error = open_tables(kv, options, detail);
    if (error) {
        kv_close(kv);
        return error;
    }
    *out_kv = kv;
    return ERROR_NONE;
}

void kv_files(const Kv *kv, KvFiles *out)
{
    MDB_envinfo info = {.me_mapsize = 0};
    (void)mdb_env_info(kv->env, &info);
    *out = (KvFiles){
        .map_bytes = info.me_mapsize,
        .device = kv->data_file.device,
        .data = kv->data_file.inode,
        .lock = kv->lock_file.inode,
    };
}

static const Kv *find_registered(KvFileId data_file, KvFileId lock_file)
{
    const Kv *other = registry;
    while (other && !is_same_file(data_file, other->data_file) &&
           !is_same_file(lock_file, other->lock_file)) {
        other = other->next;
    }
    return other;
}

bool kv_is_open_here(const KvFiles *files)
{
    KvFileId data = {.device = (dev_t)files->device, .inode = (ino_t)files->data};
    KvFileId lock = {.device = (dev_t)files->device, .inode = (ino_t)files->lock};
    pthread_mutex_lock(&registry_mutex);
    bool is_open = find_registered(data, lock) != NULL;
    pthread_mutex_unlock(&registry_mutex);
    return is_open;
}

bool kv_is_outgrown(const Kv *kv)
{
    return atomic_load_explicit(&kv->is_outgrown, memory_order_relaxed);
}

void kv_close(Kv *kv)
{
    if (!kv) return;
    if (kv_is_of_parent(kv)) { // closing would clear the parent's reader slots
        free(kv);
        return;
    }
    assert(atomic_load(&kv->txn_count) == 0);
    flush_stop(kv);
    pthread_mutex_lock(&registry_mutex);
    Kv **link = &registry;
    while (*link != kv)
        link = &(*link)->next;
    *link = kv->next;
    mdb_env_close(kv->env);
    pthread_mutex_unlock(&registry_mutex);
    free(kv);
}

// The registry's mutex is held from the check to the entry: of two opens at once, one is second.
static Error open_registered(Kv *kv, const KvOptions *options, ErrorDetail *detail)
{
    Error error = check_files(kv, options, detail);
    if (!error) error = flush_recover(kv, options, detail);
    if (!error && options->owns_directory && !options->read_only)
        error = pair_prepare(options->directory, detail);
    if (error) return error;
    int code = reserve_lock_file(options);
    if (code == EROFS && options->read_only)
        return error_say(detail, ERROR_IO,
                         "%s is in use by another process, and on a read-only file system here: "
                         "nobody can say in its lock.mdb that he reads",
                         options->directory);
    if (code)
        return error_say(detail, kv_error_of(code), "cannot reserve room for %s/lock.mdb: %s",
                         options->directory, strerror(code));

    uint64_t map_bytes = options->map_bytes;
    bool is_map_ours = map_bytes == 0;
    if (is_map_ours) map_bytes = map_bytes_for_disk(options->directory);
    code = open_environment(kv, options, map_bytes);
    while (code == ENOMEM && is_map_ours && map_bytes / 2 >= MAP_BYTES_SMALLEST) {
        map_bytes /= 2;
        code = open_environment(kv, options, map_bytes);
    }
    if (code == 0) code = identify_files(kv, options->directory);
    if (code)
        return error_say(detail, kv_error_of(code), "cannot open %s/data.mdb: %s",
                         options->directory, mdb_strerror(code));

    if (options->owns_directory && !options->read_only)
        pair_note(options->directory, kv->data_file, kv->lock_file);
    kv->next = registry;
    registry = kv;
    return ERROR_NONE;
}

Error kv_check_directory(const char *directory, unsigned long type, ErrorDetail *detail)
{
    struct statfs disk;
    if (statfs(directory, &disk))
        return error_say(detail, ERROR_IO, "cannot open the directory %s: %s", directory,
                         strerror(errno));
    const char *name = NULL;
    if (!kv_file_system_is_local(type ? type : (unsigned long)disk.f_type, &name))
        return error_say(detail, ERROR_INVALID_ARGUMENT,
                         "%s is on %s; the store's locks and its map need a local file system",
                         directory, name);
    return ERROR_NONE;
}

bool kv_file_system_is_local(unsigned long f_type, const char **out_name)
{
    static const struct {
        uint32_t f_type;
        const char *name;
    } REFUSED[] = {
        {NFS_SUPER_MAGIC, "NFS"},   {SMB_SUPER_MAGIC, "SMB"}, {SMB2_SUPER_MAGIC, "SMB"},
        {CIFS_SUPER_MAGIC, "CIFS"}, {V9FS_MAGIC, "9p"},       {FUSE_SUPER_MAGIC, "FUSE"},
    };
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        // Where f_type is a 32-bit int, the larger magics arrive with their sign extended.
        if (REFUSED[i].f_type != (uint32_t)f_type) continue;
        *out_name = REFUSED[i].name;
        return false;
    }
    return true;
}

// Refuses files that this process has open. Either file is enough: a data.mdb that was moved away
// leaves a lock.mdb behind whose locks must not be dropped.
static Error check_files(Kv *kv, const KvOptions *options, ErrorDetail *detail)
{
    int code = identify_files(kv, options->directory);
    if (code == 0 && options->read_only && kv->data_file.inode == 0) code = ENOENT;
    if (code)
        return error_say(detail, kv_error_of(code), "cannot open %s/data.mdb: %s",
                         options->directory, strerror(code));

    if (!find_registered(kv->data_file, kv->lock_file)) return ERROR_NONE;
    return error_say(detail, ERROR_UNAVAILABLE, "%s/data.mdb is already open in this process",
                     options->directory);
}

static int identify_files(Kv *kv, const char *directory)
{
    int code = kv_identify_file(directory, "data.mdb", &kv->data_file);
    return code ? code : kv_identify_file(directory, "lock.mdb", &kv->lock_file);
}

int kv_identify_file(const char *directory, const char *name, KvFileId *out_id)
{
    char path[PATH_BYTES_MAX];
    if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path)
        return ENAMETOOLONG;

    struct stat status;
    if (stat(path, &status)) return errno == ENOENT ? 0 : errno;
    *out_id = (KvFileId){.device = status.st_dev, .inode = status.st_ino};
    return 0;
}

static bool is_same_file(KvFileId a, KvFileId b)
{
    return a.inode != 0 && a.inode == b.inode && a.device == b.device;
}

// Twice the disk, so that the disk is full first. The map costs address space only.
static uint64_t map_bytes_for_disk(const char *directory)
{
    uint64_t bytes = MAP_BYTES_DEFAULT;
    struct statvfs disk;
    uint64_t disk_bytes;
    if (statvfs(directory, &disk) == 0 &&
        !__builtin_mul_overflow((uint64_t)disk.f_blocks * MAP_DISK_FACTOR, disk.f_frsize,
                                &disk_bytes) &&
        disk_bytes > bytes)
        bytes = disk_bytes;
    return bytes;
}

// LMDB makes lock.mdb a file with holes and maps it: on a full disk the first reader in a slot that
// was never used would be killed by SIGBUS. So its blocks are reserved while it is small. Its size
// stays LMDB's to choose, and closing it here drops no locks: nobody in this process has it open.
static int reserve_lock_file(const KvOptions *options)
{
    enum { SLOT_BYTES = 64, HEADER_SLOTS = 8 };
    char path[PATH_BYTES_MAX];
    if (snprintf(path, sizeof path, "%s/lock.mdb", options->directory) >= (int)sizeof path)
        return ENAMETOOLONG;
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 && errno == EROFS && options->read_only) return check_unlocked(options);
    if (file < 0) return errno;

    unsigned readers_max = options->readers_max ? options->readers_max : READERS_MAX;
    off_t bytes = ((off_t)readers_max + HEADER_SLOTS) * SLOT_BYTES;
    int code = fallocate(file, FALLOC_FL_KEEP_SIZE, 0, bytes) ? errno : 0;
    close(file);
    return kv_error_of(code) == ERROR_STORE_FULL ? code : 0; // a file system may not be able to
}

// Where lock.mdb cannot be written LMDB reads without a slot, and without a word: a writer does not
// know of such a reader, and uses its pages again under it. So that is for stores that nobody has
// open, as one on a medium that is read-only. (The mount may be read-only for this process alone.)
static int check_unlocked(const KvOptions *options)
{
    if (options->is_beside) return EROFS;
    int code;
    bool is_shared = pair_is_lock_shared(options->directory, &code);
    return is_shared ? EROFS : code;
}

static int open_environment(Kv *kv, const KvOptions *options, size_t map_bytes)
{
    // An environment that failed to open cannot be tried again.
    if (kv->env) mdb_env_close(kv->env);
    kv->env = NULL;

    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    unsigned flags = MDB_NOTLS;
    if (options->no_sync || options->flush_ms > 0) flags |= MDB_NOSYNC | MDB_NOMETASYNC;
    if (options->read_only) flags |= MDB_RDONLY;
    unsigned readers_max = options->readers_max ? options->readers_max : READERS_MAX;

    int code = mdb_env_create(&kv->env);
    if (code) return code;
    code = mdb_env_set_mapsize(kv->env, map_bytes / page_bytes * page_bytes);
    if (code) return code;
    code = mdb_env_set_maxdbs(kv->env, (MDB_dbi)options->table_count);
    if (code) return code;
    code = mdb_env_set_maxreaders(kv->env, readers_max);
    if (code) return code;
    code = mdb_env_open(kv->env, options->directory, flags, 0600);
    if (code) return code;

    // LMDB opens lock.mdb with O_CLOEXEC, but not data.mdb.
    int file;
    code = mdb_env_get_fd(kv->env, &file);
    if (code) return code;
    return fcntl(file, F_SETFD, FD_CLOEXEC) ? errno : 0;
}

// Creates the tables that are missing; a read-only store must have them all, and a file with
// another mark may lack some.
static Error open_tables(Kv *kv, const KvOptions *options, ErrorDetail *detail)
{
    MDB_txn *engine;
    int code = mdb_txn_begin(kv->env, NULL, kv->is_read_only ? MDB_RDONLY : 0, &engine);
    const char *name = "data.mdb";
    if (code == 0 && !kv->is_read_only) {
        code = fill_up_file(kv);
        if (code) mdb_txn_abort(engine);
    }
    if (code == 0) {
        bool is_other = has_other_mark(engine, options);
        unsigned flags = kv->is_read_only || is_other ? 0 : MDB_CREATE;
        for (size_t i = 0; i < options->table_count && code == 0; i++) {
            name = options->table_names[i];
            code = mdb_dbi_open(engine, name, flags, &kv->tables[i]);
            if (code == MDB_NOTFOUND && is_other) code = 0;
        }
        if (code)
            mdb_txn_abort(engine);
        else
            code = mdb_txn_commit(engine); // of a reader too: an abort would close the tables
    }
    MDB_envinfo info;
    if (code == 0 && kv->flusher && mdb_env_info(kv->env, &info) == 0)
        flush_committed(kv->flusher, info.me_last_txnid, 0);
    // A transaction of which nothing but tables was asked goes bad on pages that are not what they
    // should be.
    bool is_broken = code == MDB_NOTFOUND || code == MDB_BAD_TXN;
    if (code)
        return error_say(detail, is_broken ? ERROR_CORRUPT : kv_error_of(code),
                         "cannot open %s in %s/data.mdb: %s", name, options->directory,
                         mdb_strerror(code));
    kv->table_count = (unsigned)options->table_count;
    return ERROR_NONE;
}

static bool has_other_mark(MDB_txn *engine, const KvOptions *options)
{
    const KvMark *mark = &options->mark;
    MDB_val key = {.mv_size = mark->key.size, .mv_data = (void *)(uintptr_t)mark->key.bytes};
    MDB_val value;
    MDB_dbi table;
    if (mark->key.size == 0 ||
        mdb_dbi_open(engine, options->table_names[mark->table], 0, &table) != 0 ||
        mdb_get(engine, table, &key, &value) != 0) {
        return false;
    }
    return value.mv_size != mark->value.size ||
           memcmp(value.mv_data, mark->value.bytes, value.mv_size) != 0;
}

// A file that lost its end (a copy cut short) would kill the process with SIGBUS at the first page
// that is missing. Filled up with zeros, a hole, the engine sees a page that cannot be right. Only
// the writer may: another process's file may be growing.
static int fill_up_file(Kv *kv)
{
    MDB_envinfo info;
    MDB_stat pages;
    int file;
    struct stat status;
    int code = mdb_env_info(kv->env, &info);
    if (code == 0) code = mdb_env_stat(kv->env, &pages);
    if (code == 0) code = mdb_env_get_fd(kv->env, &file);
    if (code) return code;
    if (fstat(file, &status)) return errno;

    off_t used_bytes = (off_t)((info.me_last_pgno + 1) * pages.ms_psize);
    if (status.st_size >= used_bytes) return 0;
    return ftruncate(file, used_bytes) ? errno : 0;
}

// Held over the fork, the mutex and the list are whole in the child.
static void lock_registry(void)
{
    pthread_mutex_lock(&registry_mutex);
}

static void unlock_registry(void)
{
    pthread_mutex_unlock(&registry_mutex);
}

static void forget_registry(void)
{
    registry = NULL;
    pthread_mutex_unlock(&registry_mutex);
}

static void watch_forks(void)
{
    int code = pthread_atfork(lock_registry, unlock_registry, forget_registry);
    assert(code == 0);
}

Error kv_error_of(int code)
{
    switch (code) {
    case 0: return ERROR_NONE;
    case MDB_MAP_FULL:
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return ERROR_STORE_FULL;
    case ENOMEM: return ERROR_OUT_OF_MEMORY;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
    case MDB_VERSION_MISMATCH:
    case MDB_INCOMPATIBLE:
        return ERROR_CORRUPT; // (the last: a table's name is taken by a plain key)
    case MDB_READERS_FULL:
    case MDB_MAP_RESIZED: return ERROR_UNAVAILABLE;
    default: return ERROR_IO;
    }
}
