// Package tinetest starts a tined for a test, with a store and a socket of its own, and stops it
// when the test ends.
//
//	daemon := tinetest.Start(t)
//	client, err := tine.Dial(daemon.URL())
//
// It runs the tined that WithTined names, else $TINED, else the one in $PATH. Linux only, as tined.
package tinetest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	readyWait = 60 * time.Second
	stopWait  = 30 * time.Second // tined gives up on its clients after 6 s
	idleExit  = "10m"            // so that no tined outlives a test that was killed

	socketPathBytesMax = 107
)

// Daemon is a tined that runs for one test. Its methods are for the test's own goroutine.
type Daemon struct {
	t         testing.TB
	options   options
	directory string
	process   *exec.Cmd     // nil: none runs
	ended     chan struct{} // closed when the process has ended
}

type options struct {
	tined               string
	arguments           []string
	readyWait, stopWait time.Duration // tests shorten them
}

// Option changes what Start does.
type Option func(*options)

// WithTined names the program to run.
func WithTined(path string) Option {
	return func(o *options) { o.tined = path }
}

// WithArguments gives tined further arguments. With "--ephemeral" it keeps the store in memory,
// which is faster, and empty again after Kill or Stop.
func WithArguments(arguments ...string) Option {
	return func(o *options) { o.arguments = append(o.arguments, arguments...) }
}

// Start starts a tined and returns when it answers. If it cannot, the test ends here. When the test
// ends, tined is stopped and its store is removed.
func Start(t testing.TB, opts ...Option) *Daemon {
	t.Helper()
	d := &Daemon{t: t, options: options{readyWait: readyWait, stopWait: stopWait}}
	for _, option := range opts {
		option(&d.options)
	}
	tined, err := findTined(d.options.tined)
	if err != nil {
		t.Fatalf("tinetest: there is no tined to start: %v; "+
			"install tined, or name it by $TINED or tinetest.WithTined", err)
	}
	d.options.tined = tined
	if d.directory, err = makeDirectory(); err != nil {
		t.Fatalf("tinetest: %v", err)
	}
	t.Cleanup(d.end)
	d.Start()
	return d
}

// findTined returns the path of the program to run.
func findTined(name string) (string, error) {
	if name == "" {
		name = os.Getenv("TINED")
	}
	if name == "" {
		name = "tined"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// makeDirectory makes a directory for the socket. Its path must be short, so it is in /tmp if
// $TMPDIR is long.
func makeDirectory() (string, error) {
	directory, err := os.MkdirTemp("", "tine-")
	if err != nil || len(filepath.Join(directory, "tine.events")) <= socketPathBytesMax {
		return directory, err
	}
	if err := os.Remove(directory); err != nil {
		return "", err
	}
	return os.MkdirTemp("/tmp", "tine-")
}

// Socket returns the path of tined's socket.
func (d *Daemon) Socket() string { return filepath.Join(d.directory, "tine.sock") }

// URL returns what tine.Dial takes.
func (d *Daemon) URL() string { return "ipc://" + d.Socket() }

// Start starts tined again after Kill or Stop, on the same socket and store, and returns when it
// answers.
func (d *Daemon) Start() {
	d.t.Helper()
	if d.process != nil {
		d.t.Fatalf("tinetest: tined runs already")
	}
	if err := d.start(); err != nil {
		d.Kill()
		d.t.Fatalf("tinetest: %v; it said:\n%s", err, d.log())
	}
}

// start starts tined and waits until it says, as to systemd, that it is ready.
func (d *Daemon) start() error {
	notify := filepath.Join(d.directory, "notify")
	notified, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notify, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer os.Remove(notify)
	defer notified.Close()
	log, err := os.OpenFile(d.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()

	command := exec.Command(d.options.tined, d.arguments()...)
	command.Env = append(environment(), "NOTIFY_SOCKET="+notify, "TINE_IDLE_EXIT="+idleExit)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	d.process, d.ended = command, ended
	go func() {
		_ = command.Wait() // ProcessState tells the same
		close(ended)
		notified.Close()
	}()
	err = waitForReady(notified, time.Now().Add(d.options.readyWait))
	select {
	case <-ended:
		return fmt.Errorf("tined ended: %v", command.ProcessState)
	default:
	}
	if err != nil {
		return fmt.Errorf("tined is not ready after %v: %w", d.options.readyWait, err)
	}
	return nil
}

func (d *Daemon) arguments() []string {
	arguments := []string{"--socket", d.Socket()}
	if !slices.Contains(d.options.arguments, "--ephemeral") {
		arguments = append(arguments, "--data", filepath.Join(d.directory, "data"))
	}
	return append(arguments, d.options.arguments...)
}

// environment returns this process's environment without what configures tined.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "TINE_") || strings.HasPrefix(variable, "NOTIFY_SOCKET=")
	})
}

func waitForReady(notified *net.UnixConn, until time.Time) error {
	if err := notified.SetReadDeadline(until); err != nil {
		return err
	}
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

// Kill ends tined at once, as a crash would. What it acknowledged is in the store.
func (d *Daemon) Kill() {
	if d.process == nil {
		return
	}
	_ = d.process.Process.Kill() // it may have ended
	<-d.ended
	d.process = nil
}

// Stop tells tined to stop and waits for its end. One that does not end is killed; then, and if it
// ends with an error, the test fails.
func (d *Daemon) Stop() {
	d.t.Helper()
	if d.process == nil {
		return
	}
	_ = d.process.Process.Signal(syscall.SIGTERM) // it may have ended
	timer := time.NewTimer(d.options.stopWait)
	defer timer.Stop()
	select {
	case <-d.ended:
		if state := d.process.ProcessState; !state.Success() {
			d.t.Errorf("tinetest: tined ended: %v; it said:\n%s", state, d.log())
		}
		d.process = nil
	case <-timer.C:
		d.Kill()
		d.t.Errorf("tinetest: tined did not stop within %v and was killed; it said:\n%s",
			d.options.stopWait, d.log())
	}
}

// end stops tined with its test and removes what it kept.
func (d *Daemon) end() {
	d.Stop()
	if err := os.RemoveAll(d.directory); err != nil {
		d.t.Errorf("tinetest: %v", err)
	}
}

func (d *Daemon) logPath() string { return filepath.Join(d.directory, "log") }

// log returns what tined has logged.
func (d *Daemon) log() string {
	text, err := os.ReadFile(d.logPath())
	if err != nil {
		return err.Error()
	}
	return string(text)
}
