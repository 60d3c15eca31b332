package tine

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
)

// place makes an environment in which clients can start a tined, and stops that tined after the
// test.
func place(t *testing.T) (socket string) {
	t.Helper()
	directory := scratch(t)
	t.Setenv("TINED", built(t, "server", "tined"))
	t.Setenv("XDG_STATE_HOME", filepath.Join(directory, "state"))
	t.Setenv("XDG_DATA_HOME", filepath.Join(directory, "data"))
	socket = filepath.Join(directory, "tine.sock")
	t.Cleanup(func() {
		if pid := holder(t, socket); pid > 0 {
			_ = syscall.Kill(pid, syscall.SIGTERM)
			eventually(t, "the end of tined", func() bool { return syscall.Kill(pid, 0) != nil })
		}
	})
	return socket
}

// holder returns the id of the process that holds a socket; 0 if none ever held it.
func holder(t *testing.T, socket string) int {
	t.Helper()
	text, err := os.ReadFile(socket + ".lock")
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(strings.Split(string(text), "\n")[0]))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestManyClientsStartOneServer(t *testing.T) {
	socket := place(t)
	var group sync.WaitGroup
	for range 20 {
		client := dial(t, schemeIPC+socket, WithStart())
		group.Add(1)
		go func() {
			defer group.Done()
			if err := health(within(t), client); err != nil {
				t.Error(err)
			}
		}()
	}
	group.Wait()
	log, err := os.ReadFile(filepath.Join(os.Getenv("XDG_STATE_HOME"), "tine", "tined.log"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(log), "in use") {
		t.Errorf("more than one was started:\n%s", log)
	}
}

// A client starts tined again after it has stopped.
func TestAServerThatEndedIsStartedAgain(t *testing.T) {
	socket := place(t)
	client := dial(t, schemeIPC+socket, WithStart())
	for range 3 {
		if err := health(within(t), client); err != nil {
			t.Fatal(err)
		}
		pid := holder(t, socket)
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the end of tined", func() bool { return syscall.Kill(pid, 0) != nil })
	}
	if err := health(within(t), client); err != nil {
		t.Fatal(err)
	}
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	socket := place(t)
	if err := os.WriteFile(os.Getenv("XDG_DATA_HOME"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := health(within(t), dial(t, schemeIPC+socket, WithStart()))
	wantStatus(t, err, codes.Unavailable, "UNAVAILABLE")
	if !strings.Contains(err.Error(), "tined does not start") {
		t.Errorf("%v", err)
	}
	t.Setenv("TINED", "/nowhere/tined")
	err = health(within(t), dial(t, schemeIPC+socket, WithStart()))
	if err == nil || !strings.Contains(err.Error(), "/nowhere/tined") {
		t.Errorf("%v", err)
	}
	if _, err := Dial("tcp://127.0.0.1:7461", WithStart()); err == nil {
		t.Error("a start over tcp was promised")
	}
}

func TestReadyStartsAServer(t *testing.T) {
	socket := place(t)
	client := dial(t, schemeIPC+socket, WithStart())
	if err := client.Ready(within(t)); err != nil {
		t.Fatal(err)
	}
	if holder(t, socket) == 0 {
		t.Error("no tined runs")
	}
}

func TestReadySaysWhyAServerCannotBeStarted(t *testing.T) {
	socket := place(t)
	t.Setenv("TINED", "/nowhere/tined")
	client := dial(t, schemeIPC+socket, WithStart(), WithRetry(limit))
	err := client.Ready(context.Background())
	wantStatus(t, err, codes.Unavailable, Unavailable)
	if !strings.Contains(err.Error(), "/nowhere/tined") {
		t.Errorf("%v", err)
	}
}

// A relative path may be short enough for the client, but the daemon gets an absolute one.
func TestAPathThatIsTooLongForTheDaemonIsRefused(t *testing.T) {
	directory := filepath.Join(scratch(t), strings.Repeat("d", 60))
	if err := os.Mkdir(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(directory)
	socket := strings.Repeat("s", 60)
	dial(t, schemeIPC+socket)
	_, err := Dial(schemeIPC+socket, WithStart())
	if err == nil || !strings.Contains(err.Error(), "a socket's path has at most 107") {
		t.Errorf("%v", err)
	}
}
