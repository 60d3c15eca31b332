// Direct stores.
//
// The difficult part is to notice a replaced file with one cheap system call. Giving a name in a
// directory to another file changes the directory's times, and renaming the directory changes its
// ctime. So the directory is kept open and asked for its ctime, which nobody can set back. As long
// as the ctime stays the same, and is old enough that a change after the last check would show,
// nothing was replaced. A name further up in the path does not show in the ctime, so now and then
// the whole path is looked up.

#include "direct_store.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "kv/durable/file_names.h"
#include "os/process.h"
#include "store/open.h"

enum { PLACE_BYTES_MAX = PATH_BYTES_MAX + 16 };

// How old a time must be. This is far more than one tick of the clock of a file system: 10 ms at
// most in the kernel, or up to two seconds where times have no fraction.
static const int64_t SETTLED_NS = 100000000;
static const int64_t SETTLED_SECONDS_NS = 3000000000;

// The bit of `uses` which says that nobody may enter the store any more.
static const unsigned RETIRED = 1u << 31;

struct DirectStore {
    Store *store; // owned
    char directory[PATH_BYTES_MAX];
    int directory_file; // owned; only for fstat
    DataFileIds files;
    ino_t directory_inode;
    unsigned generation;
    atomic_uint uses;               // the number of reads that run, and RETIRED
    size_t holders;                 // clients; guarded by registry_mutex
    atomic_int_fast64_t settled_ns; // the directory's ctime if nothing was replaced; 0: not known
    DirectStore *next;              // in the registry
};

static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
static DirectStore *registry;

static bool check_place(const DirectPlace *place, Doubt *doubt);
static bool find_open(const DirectPlace *place, DirectStore **out_store, Doubt *doubt);
static bool open_anew(const DirectPlace *place, DirectStore **out_store, Doubt *doubt);
static bool settle(DirectStore *store);

__attribute__((format(printf, 3, 4))) static bool doubt_say(Doubt *doubt, TineFallback fallback,
                                                            const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    doubt->fallback = fallback;
    vsnprintf(doubt->why, sizeof(doubt->why), format, arguments);
    va_end(arguments);
    return false;
}

// Empties the registry in a child of fork, where nothing is open.
static void forget_registry(void)
{
    pthread_mutex_init(&registry_mutex, NULL);
    registry = NULL;
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, forget_registry);
}

bool direct_store_open(const DirectPlace *place, DirectStore **out_store, Doubt *out_doubt)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    if (!check_place(place, out_doubt)) return false;
    *out_store = NULL;
    pthread_mutex_lock(&registry_mutex);
    bool is_open = find_open(place, out_store, out_doubt);
    if (is_open && !*out_store) is_open = open_anew(place, out_store, out_doubt);
    pthread_mutex_unlock(&registry_mutex);
    return is_open;
}

static bool check_place(const DirectPlace *place, Doubt *doubt)
{
    const Tine__V1__DirectReads *said = place->said;
    struct stat status;
    if (!said || !*said->directory) {
        return doubt_say(doubt, TINE_FALLBACK_NOT_OFFERED, "the server offers no direct reads");
    }
    // Another user could name any file of ours, and opening a store writes to its lock.mdb. root is
    // trusted, because root may listen for the server and can write to all files anyway.
    if (place->peer_user != geteuid() && place->peer_user != 0) {
        return doubt_say(doubt, TINE_FALLBACK_OTHER_USER,
                         "the server's socket is user %lld's, this runs as %u",
                         (long long)place->peer_user, (unsigned)geteuid());
    }
    if (said->user_id != geteuid()) {
        return doubt_say(doubt, TINE_FALLBACK_OTHER_USER, "the server runs as user %u, this as %u",
                         said->user_id, (unsigned)geteuid());
    }
    if (place->format != STORE_FORMAT_VERSION) {
        return doubt_say(doubt, TINE_FALLBACK_OTHER_FORMAT,
                         "the store has format %u, this library reads %d", place->format,
                         STORE_FORMAT_VERSION);
    }
    if (stat("/proc/self/ns/pid", &status) != 0 || status.st_ino != said->pid_namespace) {
        return doubt_say(doubt, TINE_FALLBACK_OTHER_NAMESPACE,
                         "the server is in another PID namespace");
    }
    char path[PLACE_BYTES_MAX];
    int size = snprintf(path, sizeof(path), "%s/" KV_FILE_DATA, said->directory);
    if (size >= PATH_BYTES_MAX || stat(path, &status) != 0) {
        return doubt_say(doubt, TINE_FALLBACK_OTHER_NAMESPACE, "%.200s is not to be seen here",
                         said->directory);
    }
    if (status.st_ino != said->data_inode || status.st_dev != said->device) {
        return doubt_say(doubt, TINE_FALLBACK_REPLACED, "%.200s is not the server's file", path);
    }
    if (status.st_uid == geteuid()) return true;
    return doubt_say(doubt, TINE_FALLBACK_OTHER_USER, "the store belongs to user %u",
                     (unsigned)status.st_uid);
}

// Looks for the store among the open ones. If `*out_store` stays NULL, the caller opens it.
static bool find_open(const DirectPlace *place, DirectStore **out_store, Doubt *doubt)
{
    DirectStore *store = registry;
    while (store && (store->files.data_inode != place->said->data_inode ||
                     store->files.device != place->said->device)) {
        store = store->next;
    }
    if (!store) return true;
    bool is_same = store->files.lock_inode == place->said->lock_inode &&
                   strcmp(store_instance_id(store->store), place->instance_id) == 0;
    if (is_same && !(atomic_load(&store->uses) & RETIRED)) {
        store->holders++;
        *out_store = store;
        return true;
    }
    atomic_fetch_or(&store->uses, RETIRED);
    if (settle(store)) return true;
    return doubt_say(doubt, TINE_FALLBACK_REPLACED,
                     "reads of the store as it was opened before are still running");
}

static bool verify(DirectStore *store, const DirectPlace *place, Doubt *doubt)
{
    store_file_ids(store->store, &store->files);
    struct stat status;
    store->directory_file = open(store->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool is_same = store->files.data_inode == place->said->data_inode &&
                   store->files.lock_inode == place->said->lock_inode &&
                   store->files.device == place->said->device &&
                   fstat(store->directory_file, &status) == 0;
    if (is_same) store->directory_inode = status.st_ino;
    if (is_same && direct_store_is_current(store, /* looks= */ true) &&
        strcmp(store_instance_id(store->store), place->instance_id) == 0) {
        return true;
    }
    return doubt_say(doubt, TINE_FALLBACK_REPLACED, "the store in %.200s is not the server's",
                     store->directory);
}

static void close_files(DirectStore *store)
{
    if (store->directory_file >= 0) close(store->directory_file);
    store_close(store->store);
    store->store = NULL;
}

static bool open_anew(const DirectPlace *place, DirectStore **out_store, Doubt *doubt)
{
    DirectStore *store = calloc(1, sizeof(DirectStore));
    if (!store) return doubt_say(doubt, TINE_FALLBACK_STORE_ERROR, "there is no memory");
    snprintf(store->directory, sizeof(store->directory), "%s", place->said->directory);
    store->directory_file = -1;
    store->generation = process_generation();
    store->holders = 1;
    StoreOptions options = {
        .directory = store->directory,
        .is_read_only = true,
        .is_beside = true,
        .map_bytes = place->map_bytes ? place->map_bytes : place->said->map_bytes,
        .clock = place->clock,
    };
    ErrorDetail detail = {{0}};
    Error error = store_open(&options, &detail, &store->store);
    bool is_good = false;
    if (error) {
        DataFileIds said = {
            .device = place->said->device,
            .data_inode = place->said->data_inode,
            .lock_inode = place->said->lock_inode,
        };
        bool is_open_here = error == ERROR_UNAVAILABLE && data_file_is_open_here(&said);
        TineFallback fallback = is_open_here ? TINE_FALLBACK_OPEN_HERE : TINE_FALLBACK_STORE_ERROR;
        (void)doubt_say(doubt, fallback, "%s", detail.text[0] ? detail.text : error_text(error));
    } else {
        is_good = verify(store, place, doubt);
    }
    if (!is_good) {
        close_files(store);
        free(store);
        return false;
    }
    store->next = registry;
    registry = store;
    *out_store = store;
    return true;
}

// Closes a retired store that nobody reads, and frees it if nobody holds it. The caller must hold
// registry_mutex. Returns true if the file is closed. Nobody can enter the store meanwhile, because
// it is retired.
static bool settle(DirectStore *store)
{
    if (atomic_load(&store->uses) != RETIRED) return false;
    if (store->store) {
        DirectStore **link = &registry;
        while (*link != store)
            link = &(*link)->next;
        *link = store->next;
        close_files(store);
    }
    if (store->holders == 0) free(store);
    return true;
}

void direct_store_close(DirectStore *store)
{
    if (store->generation != process_generation()) return;
    pthread_mutex_lock(&registry_mutex);
    if (--store->holders == 0) atomic_fetch_or(&store->uses, RETIRED);
    (void)settle(store);
    pthread_mutex_unlock(&registry_mutex);
}

bool direct_store_enter(DirectStore *store)
{
    if (!(atomic_fetch_add(&store->uses, 1) & RETIRED)) return true;
    direct_store_leave(store);
    return false;
}

void direct_store_leave(DirectStore *store)
{
    if (store->generation != process_generation()) return;
    if (atomic_fetch_sub(&store->uses, 1) != (RETIRED | 1)) return;
    // The store may be freed by now, so it is only touched if it is in the registry.
    pthread_mutex_lock(&registry_mutex);
    DirectStore *found = registry;
    while (found && found != store)
        found = found->next;
    if (found) (void)settle(found);
    pthread_mutex_unlock(&registry_mutex);
}

static bool file_is(const DirectStore *store, const char *name, uint64_t inode)
{
    char path[PLACE_BYTES_MAX];
    struct stat status;
    snprintf(path, sizeof(path), "%s/%s", store->directory, name);
    return stat(path, &status) == 0 && status.st_ino == inode &&
           status.st_dev == store->files.device;
}

static int64_t ns_of(const struct timespec *time)
{
    return time->tv_sec * INT64_C(1000000000) + time->tv_nsec;
}

static bool is_directory(const DirectStore *store, const struct stat *status)
{
    return status->st_ino == store->directory_inode && status->st_dev == store->files.device;
}

// Returns how old a time must be so that a later change has another time.
static int64_t settled_after_ns(const struct timespec *time)
{
    return time->tv_nsec != 0 ? SETTLED_NS : SETTLED_SECONDS_NS;
}

bool direct_store_is_current(DirectStore *store, bool looks)
{
    struct stat status;
    if (fstat(store->directory_file, &status) != 0 || !is_directory(store, &status)) return false;
    struct timespec changed = status.st_ctim;
    int64_t changed_ns = ns_of(&changed);
    int64_t settled_ns = atomic_load_explicit(&store->settled_ns, memory_order_relaxed);
    if (changed_ns == settled_ns && !looks) return true;

    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (stat(store->directory, &status) != 0 || !is_directory(store, &status) ||
        !file_is(store, KV_FILE_DATA, store->files.data_inode) ||
        !file_is(store, KV_FILE_LOCK, store->files.lock_inode)) {
        return false;
    }
    if (ns_of(&now) - changed_ns > settled_after_ns(&changed)) {
        atomic_store_explicit(&store->settled_ns, changed_ns, memory_order_relaxed);
    }
    return true;
}

void direct_store_retire(DirectStore *store)
{
    atomic_fetch_or(&store->uses, RETIRED);
}

Store *direct_store_of(DirectStore *store)
{
    return store->store;
}
