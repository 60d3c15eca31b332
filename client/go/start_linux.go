package tine

// Starting tined, as the command line does (client/cli/start.c). A client that holds the lock
// checks again whether a tined listens, then starts one and keeps the lock until it is ready. So of
// twenty clients one starts it and nineteen find it.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	idleExit     = "30m"
	readyWait    = 60 * time.Second
	endedWait    = 15 * time.Second // a tined that stops waits up to 6 s for its clients
	lockPause    = 20 * time.Millisecond
	exitInUse    = 3
	lastWordsMax = 4096
)

// starter starts tined on a Unix socket.
type starter struct {
	socket string
}

func newStarter(a address) (*starter, error) {
	if a.transport != transportIPC {
		return nil, errors.New("tine: WithStart is for ipc:// only")
	}
	socket, err := filepath.Abs(a.target) // tined runs in another directory
	if err == nil {
		err = checkPathLength(socket)
	}
	return &starter{socket: socket}, err
}

// start starts a tined unless one listens by now, and connects to it with dial.
func (s *starter) start(ctx context.Context, dial func() (net.Conn, error)) (net.Conn, error) {
	tined, err := findTined()
	if err != nil {
		return nil, &permanentError{err}
	}
	directory, err := stateDirectory()
	if err != nil {
		return nil, &permanentError{err}
	}
	lock, err := takeLock(ctx, filepath.Join(directory, "start.lock"))
	if err != nil {
		return nil, &permanentError{fmt.Errorf("no tined runs, and none can be started: %w", err)}
	}
	defer lock.Close()
	if socket, err := dial(); err == nil || !isNobody(err) {
		return socket, err
	}
	l := launch{tined: tined, socket: s.socket, log: filepath.Join(directory, "tined.log")}
	if err = l.run(ctx); errors.Is(err, errInUse) {
		if socket, err := dial(); err == nil {
			return socket, nil
		}
		// A process that holds the socket and does not answer is about to exit.
		if s.waitForHolder() {
			err = l.run(ctx)
		}
	}
	if err != nil && !errors.Is(err, errInUse) {
		return nil, &permanentError{err}
	}
	return dial()
}

// findTined returns the path of $TINED, or of the tined in $PATH.
func findTined() (string, error) {
	name := os.Getenv("TINED")
	if name == "" {
		name = "tined"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("no tined runs, and there is none to start: %w", err)
	}
	return filepath.Abs(path)
}

// stateDirectory returns the directory of the log and the lock. It makes it if it is missing.
func stateDirectory() (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home := os.Getenv("HOME")
		if !filepath.IsAbs(home) {
			return "", errors.New("no tined runs, and without $HOME or $XDG_STATE_HOME there is " +
				"no place for its log; start one: tined")
		}
		state = filepath.Join(home, ".local", "state")
	}
	directory := filepath.Join(state, "tine")
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return "", fmt.Errorf("no tined runs, and there is no place for its log: %w", err)
	}
	return directory, nil
}

// takeLock waits for the lock. Closing the file releases it.
func takeLock(ctx context.Context, path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return file, nil
		}
		if err != syscall.EWOULDBLOCK && err != syscall.EINTR {
			file.Close()
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
			file.Close()
			return nil, ctx.Err()
		}
	}
}

var errInUse = errors.New("tined says that another process has the socket or the store")

// launch has the arguments of a tined to start.
type launch struct {
	tined, socket, log string
}

// run starts tined and waits until it is ready. It returns errInUse or another error if tined ends
// instead.
func (l launch) run(ctx context.Context) error {
	log, err := os.OpenFile(l.log, os.O_RDWR|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW|unix.O_NOCTTY,
		0o600)
	if err != nil {
		return fmt.Errorf("no tined runs, and its log cannot be written: %w", err)
	}
	defer log.Close()
	said, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("@tine-start-%d-%x", os.Getpid(), randomUint32())
	notified, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer notified.Close()

	command := exec.Command(l.tined, "--socket", l.socket, "--log-file", l.log)
	command.Dir = "/"
	command.Stdout, command.Stderr = log, log
	command.Env = append(os.Environ(), "NOTIFY_SOCKET="+name)
	if os.Getenv("TINE_IDLE_EXIT") == "" {
		command.Env = append(command.Env, "TINE_IDLE_EXIT="+idleExit)
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return fmt.Errorf("no tined runs, and %s cannot be started: %w", l.tined, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }() // also later, so that tined does not stay a zombie
	ready := make(chan error, 1)
	go func() { ready <- waitForReady(notified) }()
	select {
	case err := <-ready:
		return err
	case <-ended:
		if command.ProcessState.ExitCode() == exitInUse {
			return errInUse
		}
		return l.why(log, said)
	case <-time.After(readyWait):
		return fmt.Errorf("tined was started but is not ready; see %s", l.log)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waitForReady waits for the message that tined sends to systemd when it is ready.
func waitForReady(notified *net.UnixConn) error {
	var message [1024]byte
	for {
		count, err := notified.Read(message[:])
		if err != nil {
			return err
		}
		if bytes.Contains(message[:count], []byte("READY=1")) {
			return nil
		}
	}
}

// why returns the first line that tined has logged since the offset, as the reason of its end.
func (l launch) why(log *os.File, from int64) error {
	said := make([]byte, lastWordsMax)
	count, _ := log.ReadAt(said, from)
	_, line, found := strings.Cut(string(said[:count]), "tined: ")
	if !found {
		return fmt.Errorf("tined was started and ended; see %s", l.log)
	}
	line, _, _ = strings.Cut(line, "\n")
	return fmt.Errorf("tined does not start: %s", line)
}

// waitForHolder waits until the process that the socket's lock file names has ended: a tined that
// is stopping and still answers the calls it has accepted. It returns false if the process does not
// end.
func (s *starter) waitForHolder() bool {
	text, err := os.ReadFile(s.socket + ".lock")
	if err != nil {
		return true
	}
	pid, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(string(text), "\n", 2)[0]))
	if err != nil {
		return true
	}
	holder, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return true
	}
	defer unix.Close(holder)
	wanted := []unix.PollFd{{Fd: int32(holder), Events: unix.POLLIN}}
	for until := time.Now().Add(endedWait); time.Now().Before(until); {
		left := time.Until(until).Milliseconds()
		count, err := unix.Poll(wanted, int(left)+1)
		if err != unix.EINTR {
			return count > 0
		}
	}
	return false
}
