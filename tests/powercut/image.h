// The disk after a cut: what was flushed, and of each page that was not, any of the contents that
// it had since, torn at 512 bytes or not; of each directory, any of its unflushed changes, or any
// first part of them.

#pragma once

#include "os/random.h"
#include "record.h"

typedef struct Disk Disk;

// Nothing is on the disk yet. `recording` is borrowed.
Disk *disk_new(const Recording *recording);
void disk_free(Disk *disk);

// Goes on to the state of knowledge before the record `cut`, which must not go back.
void disk_advance(Disk *disk, size_t cut);

// Makes an image of the disk as it may look after the cut, in the directory `path`, which is
// emptied before.
void disk_write_image(const Disk *disk, Random *random, const char *path);
