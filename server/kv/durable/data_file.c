// Opens and closes the files.
//
// LMDB has three traps here, all of them silent. A second open of the same file in one process
// drops the locks of the first, so a registry refuses it. A child of fork shares the locks and the
// reader slots of its parent, so it is kept out. And a map that is too small fails writes on a disk
// with room, so the map is sized from the disk.

#include "kv/durable/data_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/limits.h"
#include "kv/durable/data_file_fields.h"
#include "kv/durable/file_names.h"
#include "kv/durable/file_walk.h"
#include "kv/durable/flush.h"
#include "kv/durable/lmdb_error.h"
#include "kv/durable/lock_pair.h"
#include "kv/durable/ownership.h"
#include "kv/durable/reader_slots.h"
#include "kv/durable/recovery.h"
#include "kv/durable/walk_note.h"
#include "os/file_system.h"
#include "report/log.h"

// The map's size when the disk decides. The smallest is still tried where address space is scarce.
#define MAP_BYTES_SMALLEST (UINT64_C(1) << 30)
#define MAP_BYTES_DEFAULT (UINT64_C(64) << 30)
enum { MAP_DISK_FACTOR = 2 };

static Error open_registered(DataFile *file, const DataFileOptions *options, ErrorDetail *detail);
static Error check_files(DataFile *file, const DataFileOptions *options, ErrorDetail *detail);
static int identify_files(DataFile *file, const char *directory);
static uint64_t map_bytes_for_disk(const char *directory);
static int reserve_lock_file(const DataFileOptions *options);
static int check_unlocked(const DataFileOptions *options);
// LMDB then ends the process: it has met a page that cannot be right.
static void log_assertion(MDB_env *env, const char *what)
{
    const char *directory = "";
    (void)mdb_env_get_path(env, &directory);
    log_write(LOG_ERROR, "LMDB cannot go on", "directory=\"%s\" assertion=\"%s\"", directory, what);
}

static int open_lmdb(DataFile *file, const DataFileOptions *options, size_t map_bytes);
static int fill_up(DataFile *file);
static void watch_forks(void);

static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
static DataFile *registry; // every open DataFile of this process

Error data_file_open(const DataFileOptions *options, ErrorDetail *detail, DataFile **out_file)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);

    Error error = file_system_check(options->directory, options->file_system_type, detail);
    if (error) return error;
    DataFile *file = calloc(1, sizeof(DataFile));
    if (!file) return error_say(detail, ERROR_OUT_OF_MEMORY, "no memory to open the store");
    file->is_read_only = options->read_only;
    file->is_ephemeral = options->no_sync;
    file->generation = process_generation();
    file->ownership.directory = -1;

    pthread_mutex_lock(&registry_mutex);
    error = open_registered(file, options, detail);
    if (error && file->lmdb) mdb_env_close(file->lmdb);
    pthread_mutex_unlock(&registry_mutex);
    if (error) {
        ownership_end(file);
        free(file);
        return error;
    }
    // Without the mutex: these wait for the writer of any process, and fork waits for the mutex.
    reader_slots_clear_dead(file);
    int code = fill_up(file);
    if (code) error = lmdb_fail(detail, code, "fill up", options->directory, KV_FILE_DATA);
    if (error) {
        data_file_close(file);
        return error;
    }
    walk_note_read(file, options);
    *out_file = file;
    return ERROR_NONE;
}

void data_file_close(DataFile *file)
{
    if (!file) return;
    if (!data_file_is_of_parent(file)) { // closing would clear the parent's reader slots
        flush_stop(file);
        walk_note_end(file);
        pthread_mutex_lock(&registry_mutex);
        DataFile **link = &registry;
        while (*link != file)
            link = &(*link)->next;
        *link = file->next;
        mdb_env_close(file->lmdb);
        pthread_mutex_unlock(&registry_mutex);
    }
    ownership_end(file);
    free(file);
}

void data_file_ids(const DataFile *file, DataFileIds *out)
{
    MDB_envinfo info = {.me_mapsize = 0};
    (void)mdb_env_info(file->lmdb, &info);
    *out = (DataFileIds){
        .map_bytes = info.me_mapsize,
        .device = file->data_id.device,
        .data_inode = file->data_id.inode,
        .lock_inode = file->lock_id.inode,
    };
}

static bool is_registered(FileId data_id, FileId lock_id)
{
    const DataFile *other = registry;
    while (other && !file_id_equal(data_id, other->data_id) &&
           !file_id_equal(lock_id, other->lock_id)) {
        other = other->next;
    }
    return other != NULL;
}

bool data_file_is_open_here(const DataFileIds *ids)
{
    FileId data_id = {.device = (dev_t)ids->device, .inode = (ino_t)ids->data_inode};
    FileId lock_id = {.device = (dev_t)ids->device, .inode = (ino_t)ids->lock_inode};
    pthread_mutex_lock(&registry_mutex);
    bool is_open = is_registered(data_id, lock_id);
    pthread_mutex_unlock(&registry_mutex);
    return is_open;
}

bool data_file_is_outgrown(const DataFile *file)
{
    return atomic_load_explicit(&file->is_outgrown, memory_order_relaxed);
}

// LMDB holds the writer's lock while it copies the two meta pages, and a reader's snapshot for the
// rest. No page of the snapshot is reused meanwhile, so the file may grow.
Error data_file_copy(DataFile *file, int to, bool is_compact, ErrorDetail *detail)
{
    if (data_file_is_of_parent(file)) return data_file_refuse_child(detail);
    int code = mdb_env_copyfd2(file->lmdb, to, is_compact ? MDB_CP_COMPACT : 0);
    if (code == 0) return ERROR_NONE;
    if (code == MDB_INCOMPATIBLE && is_compact) {
        return error_say(detail, ERROR_CORRUPT,
                         "the store cannot be compacted: some of its pages belong to nothing");
    }
    return lmdb_fail(detail, code, "copy", file->directory, KV_FILE_DATA);
}

// The caller holds the registry's mutex from the check to the entry, so of two opens at the same
// time one is the second.
static Error open_registered(DataFile *file, const DataFileOptions *options, ErrorDetail *detail)
{
    const char *directory = options->directory;
    Error error = check_files(file, options, detail);
    if (!error) error = recovery_run(file, options, detail);
    bool is_owner = options->owns_directory && !options->read_only;
    if (!error && is_owner) error = lock_pair_prepare(directory, detail);
    bool is_walked = !options->accepts_damage;
    if (!error && is_walked && options->owns_directory) error = file_walk_unopened(options, detail);
    if (error) return error;
    int code = reserve_lock_file(options);
    if (code == EROFS && options->read_only) {
        return error_say(detail, ERROR_IO,
                         "%s is in use by another process, and on a read-only file system here: "
                         "nobody can say in its " KV_FILE_LOCK " that he reads",
                         directory);
    }
    if (code) return lmdb_fail(detail, code, "reserve room for", directory, KV_FILE_LOCK);

    uint64_t map_bytes = options->map_bytes;
    bool is_map_ours = map_bytes == 0;
    if (is_map_ours) map_bytes = map_bytes_for_disk(directory);
    code = open_lmdb(file, options, map_bytes);
    while (code == ENOMEM && is_map_ours && map_bytes / 2 >= MAP_BYTES_SMALLEST) {
        map_bytes /= 2;
        code = open_lmdb(file, options, map_bytes);
    }
    if (code == 0) code = mdb_env_get_path(file->lmdb, &file->directory);
    if (code == 0) code = identify_files(file, directory);
    if (code == 0) code = ownership_begin(file, options);
    if (code) return lmdb_fail(detail, code, "open", directory, KV_FILE_DATA);

    if (is_walked && !options->owns_directory) {
        error = file_walk_opened(file, options, detail);
        if (error) return error;
    }
    if (is_owner) lock_pair_note(directory, file->data_id, file->lock_id);
    file->next = registry;
    registry = file;
    return ERROR_NONE;
}

// Refuses files that this process has open. Either file is enough: a data.mdb that was moved away
// leaves a lock.mdb behind whose locks must not be dropped.
static Error check_files(DataFile *file, const DataFileOptions *options, ErrorDetail *detail)
{
    int code = identify_files(file, options->directory);
    if (code == 0 && options->read_only && file->data_id.inode == 0) code = ENOENT;
    if (code) return lmdb_fail(detail, code, "open", options->directory, KV_FILE_DATA);
    if (!is_registered(file->data_id, file->lock_id)) return ERROR_NONE;
    return error_say(detail, ERROR_UNAVAILABLE,
                     "%s/" KV_FILE_DATA " is already open in this process", options->directory);
}

static int identify_files(DataFile *file, const char *directory)
{
    int code = file_at_identify(directory, KV_FILE_DATA, &file->data_id);
    return code ? code : file_at_identify(directory, KV_FILE_LOCK, &file->lock_id);
}

// Returns twice the size of the disk, so that the disk is full first. The map costs address space
// only.
static uint64_t map_bytes_for_disk(const char *directory)
{
    uint64_t bytes = MAP_BYTES_DEFAULT;
    struct statvfs disk;
    uint64_t disk_bytes;
    if (statvfs(directory, &disk) == 0 &&
        !__builtin_mul_overflow((uint64_t)disk.f_blocks * MAP_DISK_FACTOR, disk.f_frsize,
                                &disk_bytes) &&
        disk_bytes > bytes) {
        bytes = disk_bytes;
    }
    return bytes;
}

// Returns the number of slots, with those of pins.
static unsigned slots_of(const DataFileOptions *options)
{
    unsigned readers_max = options->readers_max ? options->readers_max : READERS_MAX;
    return readers_max + reader_slots_of_pins(options->no_sync);
}

// LMDB makes lock.mdb a file with holes and maps it: on a full disk the first reader in a slot that
// was never used would be killed by SIGBUS. So its blocks are reserved while it is small. LMDB
// still chooses its size. Closing it here drops no locks, because nobody in this process has it
// open.
static int reserve_lock_file(const DataFileOptions *options)
{
    enum { SLOT_BYTES = 64, HEADER_SLOTS = 8 };
    int file = file_at_open(options->directory, KV_FILE_LOCK, O_RDWR | O_CREAT);
    if (file < 0 && errno == EROFS && options->read_only) return check_unlocked(options);
    if (file < 0) return errno;

    off_t bytes = ((off_t)slots_of(options) + HEADER_SLOTS) * SLOT_BYTES;
    int code = fallocate(file, FALLOC_FL_KEEP_SIZE, 0, bytes) ? errno : 0;
    close(file);
    return lmdb_error_of(code) == ERROR_STORE_FULL ? code : 0; // some file systems cannot do it
}

// Where lock.mdb cannot be written LMDB reads without a slot, and without a word: a writer does not
// know of such a reader, and reuses its pages. So that is only for stores that nobody has open,
// such as one on a read-only medium. (The mount may be read-only for this process alone.)
static int check_unlocked(const DataFileOptions *options)
{
    if (options->is_beside) return EROFS;
    int code;
    bool is_shared = lock_pair_is_shared(options->directory, &code);
    return is_shared ? EROFS : code;
}

static int open_lmdb(DataFile *file, const DataFileOptions *options, size_t map_bytes)
{
    // An environment that failed to open cannot be tried again.
    if (file->lmdb) mdb_env_close(file->lmdb);
    file->lmdb = NULL;

    enum { NAMED_TABLES_MAX = 32 }; // that a migration opens in one transaction
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    unsigned flags = MDB_NOTLS;
    if (options->read_only) {
        flags |= MDB_RDONLY;
    } else {
        flags |= MDB_NOSYNC | MDB_NOMETASYNC; // the log, or nothing, makes commits durable
    }

    int code = mdb_env_create(&file->lmdb);
    if (code) return code;
    code = mdb_env_set_assert(file->lmdb, log_assertion);
    if (code) return code;
    code = mdb_env_set_mapsize(file->lmdb, map_bytes / page_bytes * page_bytes);
    if (code) return code;
    code = mdb_env_set_maxdbs(file->lmdb, NAMED_TABLES_MAX);
    if (code) return code;
    code = mdb_env_set_maxreaders(file->lmdb, slots_of(options));
    if (code) return code;
    code = mdb_env_open(file->lmdb, options->directory, flags, 0600);
    if (code) return code;

    // LMDB opens lock.mdb with O_CLOEXEC, but not data.mdb.
    int data_file;
    code = mdb_env_get_fd(file->lmdb, &data_file);
    if (code) return code;
    return fcntl(data_file, F_SETFD, FD_CLOEXEC) ? errno : 0;
}

static int fill_up_to_last_page(DataFile *file)
{
    MDB_envinfo info;
    MDB_stat pages;
    int data_file;
    struct stat status;
    int code = mdb_env_info(file->lmdb, &info);
    if (code == 0) code = mdb_env_stat(file->lmdb, &pages);
    if (code == 0) code = mdb_env_get_fd(file->lmdb, &data_file);
    if (code) return code;
    if (fstat(data_file, &status)) return errno;

    off_t used_bytes = (off_t)((info.me_last_pgno + 1) * pages.ms_psize);
    if (status.st_size >= used_bytes) return 0;
    return ftruncate(data_file, used_bytes) ? errno : 0;
}

// A file that lost its end (a copy cut short) would kill the process with SIGBUS at the first page
// that is missing. Filled up with zeros, a hole, it shows LMDB a page that cannot be right. Only a
// writer may do that: the file of another process may be growing.
static int fill_up(DataFile *file)
{
    if (file->is_read_only) return 0;
    MDB_txn *writer;
    int code = mdb_txn_begin(file->lmdb, NULL, 0, &writer);
    if (code) return code;
    code = fill_up_to_last_page(file);
    mdb_txn_abort(writer);
    return code;
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
