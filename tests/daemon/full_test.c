// A full disk under load: writers are told so, readers go on, and when there is space again so do
// the writers, without a restart. Nothing acknowledged is lost.

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "writers.h"

enum {
    WRITERS = 16,
    TEXT_BYTES = 8 * 1024,
    DISK_BYTES = 24 * 1024 * 1024,
    BALLAST_BYTES = 12 * 1024 * 1024,
    FILE_BYTES_MAX = 6 * 1024 * 1024,
};

// Waits until `more` writes were refused, and reads all the while.
static void read_until_refused(Writers *writers, Sp sp, uint64_t more)
{
    uint64_t wanted = writers_refused(writers) + more;
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    for (size_t i = 0; writers_refused(writers) < wanted; i++) {
        request.session_id = writers->list[i % WRITERS].session;
        call_expect(sp, engine_request(METHOD_GET_SESSION, &request, NULL, 0), STATUS_OK);
    }
}

// What is full is made to be, and to be no more, by these.
typedef struct Disk {
    Tined tined;
    char ballast[PLACE_BYTES_MAX];
    rlim_t hard;
} Disk;

static void serve_through(Disk *disk, void (*make_full)(Disk *disk), void (*make_room)(Disk *disk))
{
    static Writers writers;
    Tined *tined = &disk->tined;
    tined_start(tined, NULL);
    Sp sp = sp_open(tined->socket);
    writers_start(&writers, tined->socket, WRITERS, TEXT_BYTES, /* is_full_allowed= */ true);
    writers_wait_acknowledged(&writers, WRITERS);
    make_full(disk);
    read_until_refused(&writers, sp, test_scaled(1000));
    make_room(disk);
    writers_wait_acknowledged(&writers, 10 * WRITERS);
    writers_stop(&writers);
    sp_close(&sp);
    CHECK_EQ(tined_stop(tined, SIGTERM), 0);
    writers_check(&writers, tined->data);
}

static void write_ballast(Disk *disk)
{
    int file = open(disk->ballast, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(file >= 0);
    CHECK_EQ(posix_fallocate(file, 0, BALLAST_BYTES), 0);
    close(file);
}

static void wait_until_full(Disk *disk)
{
    (void)disk; // the writers fill it
}

static void remove_ballast(Disk *disk)
{
    CHECK_EQ(unlink(disk->ballast), 0);
}

TEST(a_full_disk_refuses_writers_only_and_only_as_long_as_it_is_full)
{
    if (geteuid() != 0 || unshare(CLONE_NEWNS)) SKIP("needs root to mount a tmpfs");
    static Disk disk;
    tined_place(&disk.tined, "t");
    char directory[PLACE_BYTES_MAX], options[32];
    snprintf(directory, sizeof(directory), "%s/t", test_dir());
    snprintf(disk.ballast, sizeof(disk.ballast), "%s/t/ballast", test_dir());
    snprintf(options, sizeof(options), "size=%d", DISK_BYTES);
    CHECK_EQ(mkdir(directory, 0700), 0);
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("tmpfs", directory, "tmpfs", 0, options)) {
        SKIP("cannot mount a tmpfs");
    }
    write_ballast(&disk);
    serve_through(&disk, wait_until_full, remove_ballast);
    CHECK_EQ(umount2(directory, MNT_DETACH), 0);
}

// The same without a mount: the kernel lets no file of the daemon grow past a size.
static void set_file_limit(Disk *disk, rlim_t soft)
{
    struct rlimit limit = {.rlim_cur = soft, .rlim_max = disk->hard};
    CHECK_EQ(prlimit(disk->tined.pid, RLIMIT_FSIZE, &limit, NULL), 0);
}

static void limit_files(Disk *disk)
{
    set_file_limit(disk, FILE_BYTES_MAX);
}

static void unlimit_files(Disk *disk)
{
    set_file_limit(disk, disk->hard);
}

TEST(a_limit_of_file_sizes_refuses_writers_only_while_it_is_there)
{
    static Disk disk;
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
    disk.hard = limit.rlim_max;
    tined_place(&disk.tined, "t");
    serve_through(&disk, limit_files, unlimit_files);
}
