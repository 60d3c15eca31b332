// An installation works: by `cmake --install`, and as a Debian package.

#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "shell.h"

// Creates a session with the installed tine, which finds the tined beside it, and stops that tined.
static void check_works(Shell *shell, const char *bin)
{
    shell_ok(shell,
             "%s/tine new --slug installed && %s/tine show installed && "
             "readlink /proc/$(cat data/tine/tine.lock)/exe; "
             "kill $(cat data/tine/tine.lock); flock data/tine/tine.lock true",
             bin, bin);
    char path[1100];
    snprintf(path, sizeof(path), "%s/tined\n", bin);
    shell_shows(shell, path);
}

static void check_files(Shell *shell, const char *root)
{
    shell_ok(shell,
             "cd %s && ls bin/tine bin/tined share/bash-completion/completions/tine "
             "share/zsh/site-functions/_tine share/fish/vendor_completions.d/tine.fish "
             "share/man/man1/tine.1.gz share/man/man8/tined.8.gz "
             "lib/systemd/user/tined.service share/doc/tine/copyright",
             root);
    shell_ok(shell, "cd %s && find . -type f -perm /022", root);
    CHECK_STR(shell->output, "");
}

TEST(what_is_installed_into_a_directory_works)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, "DESTDIR=$PWD/root " CMAKE " --install " BUILD_DIR " --component tine "
                    "--prefix /opt/tine");
    check_files(shell, "root/opt/tine");
    shell_ok(shell, "grep ExecStart= root/opt/tine/lib/systemd/user/tined.service");
    shell_shows(shell, "ExecStart=/opt/tine/bin/tined --data ");
    char bin[1024];
    snprintf(bin, sizeof(bin), "%s/root/opt/tine/bin", test_dir());
    check_works(shell, bin);
}

TEST(what_was_installed_is_removed_and_nothing_else)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, "DESTDIR=$PWD/root " CMAKE " --install " BUILD_DIR " --component tine "
                    "--prefix /opt/tine && mkdir -p build/release && "
                    "cp " BUILD_DIR "/install_manifest_tine.txt build/release/install_manifest.txt "
                    "&& echo mine >root/opt/tine/bin/mine");
    check_files(shell, "root/opt/tine");
    shell_ok(shell, "make -s -f " SOURCE_DIR "/Makefile uninstall DESTDIR=$PWD/root && "
                    "find root -type f; find root -path '*/tine/*' -name tine");
    CHECK_STR(shell->output, "root/opt/tine/bin/mine\n");
}

TEST(the_debian_package_is_whole)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    SKIP("nobody packages a sanitized build");
#endif
    shell_ok(shell, "command -v dpkg-deb dpkg-shlibdeps || true");
    if (!strstr(shell->output, "shlibdeps")) SKIP("this system has no dpkg");
    shell_ok(shell, "$(dirname " CMAKE ")/cpack --config " BUILD_DIR "/CPackConfig.cmake -B deb && "
                    "dpkg-deb -I deb/tine_*.deb && dpkg-deb -x deb/tine_*.deb root");
    shell_shows(shell, "Package: tine\n");
    shell_shows(shell, "liblmdb0 (");
    shell_shows(shell, "libprotobuf-c1 (");
    check_files(shell, "root/usr");
    shell_ok(shell, "grep ExecStart=/usr/bin/tined root/usr/lib/systemd/user/tined.service");
    char bin[1024];
    snprintf(bin, sizeof(bin), "%s/root/usr/bin", test_dir());
    check_works(shell, bin);
}

TEST(the_unit_is_valid)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, "command -v systemd-analyze || true");
    if (!*shell->output) SKIP("this system has no systemd");
    shell_ok(shell, "DESTDIR=$PWD/root " CMAKE " --install " BUILD_DIR " --component tine "
                    "--prefix /usr && "
                    "sed \"s|=/usr/bin|=$PWD/root/usr/bin|\" "
                    "root/usr/lib/systemd/user/tined.service > tined.service && "
                    "systemd-analyze verify --user --man=no ./tined.service 2>&1");
    CHECK_STR(strstr(shell->output, "tined.service:") ? shell->output : "", "");
}

// The manual of tine is generated. That of tined is written by hand and compared with its help.
TEST(the_manuals_are_right)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, "tined --help | grep -o '^  --[a-z-]*' | tr -d ' ' | while read -r option; do "
                    "sed 's/\\\\-/-/g' " SOURCE_DIR "/server/daemon/tined.8 | "
                    "grep -q -e \"$option\" || { echo \"$option\"; exit 1; }; done");
    shell_ok(shell, "tine __man | sed 's/\\\\-/-/g' > manual && "
                    "tine help | sed -n '/^Commands/,/^$/s/^  \\([a-z-]*\\) .*/\\1/p' | "
                    "while read -r command; do "
                    "grep -q \"^.SS \\\"$command[ \\\"]\" manual || exit 1; done");
    shell_ok(shell, "command -v groff || true");
    if (!*shell->output) SKIP("this system has no groff");
    shell_ok(shell, "tine __man | groff -k -man -ww -z -Tutf8 2>&1; "
                    "groff -man -ww -z -Tutf8 " SOURCE_DIR "/server/daemon/tined.8 2>&1");
    CHECK_STR(shell->output, "");
}
