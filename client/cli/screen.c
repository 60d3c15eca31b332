// Takes over the terminal. Signals that would end or stop the process are blocked and read from a
// descriptor, so that the terminal is restored before they act.

#include "screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "text/print.h"

static struct {
    struct termios before;
    sigset_t signals_before;
    int signals; // a signalfd
    int signal_number;
    bool is_open;
} screen = {.signals = -1};

// Switches to the alternate screen and hides the cursor; and back.
#define TAKE "\033[?1049h\033[?25l\033[2J"
#define GIVE_BACK "\033[0m\033[?25h\033[?1049l"

static void take(void)
{
    struct termios raw = screen.before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    Printer out = print_to_stdout();
    print(&out, TAKE);
    print_flush(&out);
}

static void give_back(void)
{
    Printer out = print_to_stdout();
    out.has_colour = true; // it resets them
    print(&out, GIVE_BACK);
    print_flush(&out);
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &screen.before);
}

bool screen_open(void)
{
    static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
    if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &screen.before) != 0) return false;
    sigset_t wanted;
    sigemptyset(&wanted);
    for (size_t i = 0; i < sizeof(SIGNALS) / sizeof(*SIGNALS); i++)
        sigaddset(&wanted, SIGNALS[i]);
    sigprocmask(SIG_BLOCK, &wanted, &screen.signals_before);
    screen.signals = signalfd(-1, &wanted, SFD_CLOEXEC);
    screen.is_open = screen.signals >= 0;
    if (screen.is_open) {
        take();
    } else {
        sigprocmask(SIG_SETMASK, &screen.signals_before, NULL);
    }
    return screen.is_open;
}

static ScreenEvent on_signal(void)
{
    struct signalfd_siginfo info;
    if (read(screen.signals, &info, sizeof(info)) != sizeof(info)) return SCREEN_TIMEOUT;
    if (info.ssi_signo == SIGWINCH) return SCREEN_CHANGED;
    if (info.ssi_signo != SIGTSTP) {
        screen.signal_number = (int)info.ssi_signo;
        return SCREEN_SIGNAL;
    }
    give_back();
    raise(SIGSTOP); // returns when the process is continued
    take();
    return SCREEN_CHANGED;
}

ScreenEvent screen_wait(int timeout_ms, char *out_key)
{
    struct pollfd wanted[] = {{.fd = screen.signals, .events = POLLIN},
                              {.fd = STDIN_FILENO, .events = POLLIN}};
    int count = poll(wanted, 2, timeout_ms);
    if (count < 0 && errno != EINTR) return SCREEN_SIGNAL;
    if (count <= 0) return SCREEN_TIMEOUT;
    if (wanted[0].revents) return on_signal();
    ssize_t size = read(STDIN_FILENO, out_key, 1);
    return size == 1 ? SCREEN_KEY : SCREEN_SIGNAL; // otherwise the terminal is gone
}

void screen_close(void)
{
    if (!screen.is_open) return;
    screen.is_open = false;
    give_back();
    close(screen.signals);
    sigprocmask(SIG_SETMASK, &screen.signals_before, NULL);
}

void screen_obey(void)
{
    if (screen.signal_number == 0) return;
    signal(screen.signal_number, SIG_DFL);
    raise(screen.signal_number);
}

void screen_size(int *out_columns, int *out_rows)
{
    struct winsize size;
    *out_columns = 80;
    *out_rows = 24;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return;
    *out_columns = size.ws_col;
    *out_rows = size.ws_row;
}
