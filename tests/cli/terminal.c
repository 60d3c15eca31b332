// Runs commands at a pseudo-terminal.

#include "terminal.h"

#include <errno.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "harness.h"
#include "shell.h"

Terminal *terminal_start(const char *line, int columns)
{
    Terminal *terminal = calloc(1, sizeof(Terminal));
    CHECK(terminal != NULL);
    struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = 40};
    terminal->pid = forkpty(&terminal->fd, NULL, NULL, &size);
    CHECK(terminal->pid >= 0);
    if (terminal->pid == 0) {
        shell_enter_home();
        setenv("TERM", "xterm-256color", 1);
        (void)signal(SIGINT, SIG_DFL); // whoever runs the tests in the background ignores it
        execl("/bin/bash", "bash", "-c", line, (char *)NULL);
        _exit(127);
    }
    return terminal;
}

void terminal_close(Terminal **terminal)
{
    if (!*terminal) return;
    if ((*terminal)->pid > 0) {
        kill((*terminal)->pid, SIGKILL);
        waitpid((*terminal)->pid, NULL, 0);
    }
    close((*terminal)->fd);
    free(*terminal);
    *terminal = NULL;
}

// Returns false when the other side is closed.
static int read_more(Terminal *terminal)
{
    size_t room = TERMINAL_BYTES_MAX - 1 - terminal->size;
    CHECK(room > 0);
    char *end = terminal->text + terminal->size;
    ssize_t size = read(terminal->fd, end, room);
    if (size < 0 && errno == EINTR) return 1;
    // The other side may write and close between the kernel's check for bytes and its check for the
    // end: the first EIO may come before the last bytes.
    if (size < 0 && errno == EIO) size = read(terminal->fd, end, room);
    if (size <= 0) return 0;
    terminal->size += (size_t)size;
    return 1;
}

void terminal_wait_for(Terminal *terminal, const char *text)
{
    while (!memmem(terminal->text, terminal->size, text, strlen(text))) {
        CHECK(read_more(terminal));
    }
}

void terminal_type(Terminal *terminal, const char *keys)
{
    CHECK_EQ(write(terminal->fd, keys, strlen(keys)), (ssize_t)strlen(keys));
}

int terminal_end(Terminal *terminal)
{
    while (read_more(terminal))
        continue;
    int status = 0;
    CHECK_EQ(waitpid(terminal->pid, &status, 0), terminal->pid);
    terminal->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int terminal_is_clean(const Terminal *terminal)
{
    struct termios now;
    CHECK_EQ(tcgetattr(terminal->fd, &now), 0);
    return (now.c_lflag & (ICANON | ECHO)) == (ICANON | ECHO);
}

Terminal *terminal_run(const char *line, int columns)
{
    Terminal *terminal = terminal_start(line, columns);
    int code = terminal_end(terminal);
    if (code != 0) CHECK_STR(terminal->text, "");
    CHECK_EQ(code, 0);
    return terminal;
}
