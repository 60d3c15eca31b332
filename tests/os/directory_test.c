// Directories: made with their parents, removed with their files, and judged private or not.

#include "os/directory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "os/path.h"

enum { PATH_BYTES = 256 };

typedef struct Place {
    char path[PATH_BYTES];
} Place;

static Place place_in(const char *directory, const char *name)
{
    Place place;
    snprintf(place.path, sizeof(place.path), "%s/%s", directory, name);
    return place;
}

static Place temporary(void)
{
    Place place = {"/tmp/tine-test-directory-XXXXXX"};
    CHECK(mkdtemp(place.path) != NULL);
    return place;
}

TEST(directory_is_made_with_those_above_it_for_this_user_alone)
{
    Place top = temporary(), middle = place_in(top.path, "a"), low = place_in(middle.path, "b");
    CHECK_EQ(directory_make(low.path, NULL), ERROR_NONE);
    CHECK_EQ(directory_make(low.path, NULL), ERROR_NONE); // it is there already
    struct stat found;
    CHECK_EQ(stat(low.path, &found), 0);
    CHECK_EQ(found.st_mode & 0777, 0700);
    directory_remove(low.path);
    directory_remove(middle.path);
    directory_remove(top.path);
    CHECK(access(top.path, F_OK) != 0);
}

TEST(directory_that_cannot_be_made_is_named_with_the_cause)
{
    ErrorDetail detail = {{0}};
    Place top = temporary(), file = place_in(top.path, "file"), low = place_in(file.path, "b");
    fclose(fopen(file.path, "w"));
    CHECK_EQ(directory_make(low.path, &detail), ERROR_IO);
    CHECK(strstr(detail.text, low.path) && strstr(detail.text, "Not a directory"));
    directory_remove(top.path);
}

TEST(directory_removal_leaves_what_is_deeper_alone)
{
    Place top = temporary(), below = place_in(top.path, "below"), file = place_in(top.path, "file");
    Place kept = place_in(below.path, "kept"), in_below = place_in(below.path, "file");
    CHECK_EQ(mkdir(below.path, 0700), 0);
    CHECK_EQ(mkdir(kept.path, 0700), 0);
    fclose(fopen(file.path, "w"));
    fclose(fopen(in_below.path, "w"));
    directory_remove(top.path);
    CHECK(access(file.path, F_OK) != 0);
    CHECK(access(in_below.path, F_OK) != 0);
    CHECK(access(kept.path, F_OK) == 0);
    directory_remove(below.path);
    directory_remove(top.path);
    CHECK(access(top.path, F_OK) != 0);
}

TEST(directory_that_is_missing_cannot_be_flushed)
{
    ErrorDetail detail = {{0}};
    CHECK_EQ(directory_flush("/tmp/tine-test-no-such-directory", &detail), ERROR_IO);
    CHECK(strstr(detail.text, "No such file or directory") != NULL);
}

TEST(directory_where_others_may_add_but_not_remove_is_private_and_not_exclusive)
{
    Place top = temporary();
    CHECK_EQ(chmod(top.path, 01777), 0);
    CHECK_EQ(directory_check_private(top.path, NULL), ERROR_NONE);
    CHECK(!directory_is_exclusive(top.path));
    CHECK_EQ(chmod(top.path, 0777), 0);
    CHECK_EQ(directory_check_private(top.path, NULL), ERROR_IO);
    CHECK_EQ(chmod(top.path, 0700), 0);
    CHECK(directory_is_exclusive(top.path));
    directory_remove(top.path);
}

TEST(path_is_taken_apart_at_its_last_slash)
{
    char above[PATH_BYTES];
    path_directory_of("/a/b/c", above, sizeof(above));
    CHECK_STR(above, "/a/b");
    path_directory_of("/a", above, sizeof(above));
    CHECK_STR(above, "/");
    path_directory_of("a", above, sizeof(above));
    CHECK_STR(above, ".");
}

TEST(path_that_is_too_long_once_it_is_absolute_is_refused)
{
    char path[8] = "abc";
    CHECK_EQ(path_make_absolute(path, sizeof(path), NULL), ERROR_INVALID_ARGUMENT);
    CHECK_STR(path, "abc");
}
