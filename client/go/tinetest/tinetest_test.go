package tinetest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	tine "github.com/tine-store/tine/client/go"
	"github.com/tine-store/tine/client/go/tinev1"
)

// TestMain makes this program a tined that behaves badly, if a test asks for one.
func TestMain(m *testing.M) {
	if behaviour := os.Getenv("TINETEST_FAKE"); behaviour != "" {
		fake(behaviour)
		return
	}
	if os.Getenv("TINED") == "" {
		build := os.Getenv("TINE_BUILD")
		if build == "" {
			build = filepath.Join("..", "..", "..", "build", "release")
		}
		os.Setenv("TINED", filepath.Join(build, "server", "tined"))
	}
	os.Exit(m.Run())
}

func fake(behaviour string) {
	fmt.Fprintln(os.Stderr, "tined: this one is no good")
	switch behaviour {
	case "ends":
		os.Exit(1)
	case "is never ready":
		select {}
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	connection, err := net.Dial("unixgram", os.Getenv("NOTIFY_SOCKET"))
	if err == nil {
		_, err = connection.Write([]byte("READY=1\n"))
	}
	if err != nil {
		os.Exit(2)
	}
	<-stop
	if behaviour == "does not stop" {
		select {}
	}
	os.Exit(4)
}

// recorder is a test of which only the failures are noted.
type recorder struct {
	testing.TB
	cleanups []func()
	failures []string
	fatal    bool
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(format string, arguments ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, arguments...))
}

func (r *recorder) Fatalf(format string, arguments ...any) {
	r.Errorf(format, arguments...)
	r.fatal = true
	runtime.Goexit()
}

// record runs a test in which Start is called, to its end, cleanups included.
func record(t *testing.T, opts ...Option) *recorder {
	t.Helper()
	r := &recorder{TB: t}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Start(r, opts...)
	}()
	<-ended
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
	return r
}

func (r *recorder) wantFailure(t *testing.T, isFatal bool, words ...string) {
	t.Helper()
	if len(r.failures) != 1 || r.fatal != isFatal {
		t.Fatalf("fatal: %v, wanted %v; %q", r.fatal, isFatal, r.failures)
	}
	for _, word := range words {
		if !strings.Contains(r.failures[0], word) {
			t.Errorf("%q is missing in %q", word, r.failures[0])
		}
	}
}

// createSession creates a session, by a call that is not tried again, and returns how many there
// are.
func createSession(t *testing.T, d *Daemon) (count int) {
	t.Helper()
	client, err := tine.Dial(d.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	store := tinev1.NewStoreServiceClient(client)
	_, err = store.CreateSession(t.Context(), &tinev1.CreateSessionRequest{
		Session: &tinev1.NewSession{
			ProjectDir: "/work", Model: &tinev1.ModelRef{Provider: "anthropic", Name: "claude-sonnet-4"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	listed, err := store.ListSessions(t.Context(), &tinev1.ListSessionsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return len(listed.Sessions)
}

func TestADaemonAnswersAndKeepsItsStore(t *testing.T) {
	d := Start(t)
	createSession(t, d)
	d.Kill()
	d.Start()
	createSession(t, d)
	d.Stop()
	d.Start()
	if count := createSession(t, d); count != 3 {
		t.Errorf("%d sessions, wanted 3", count)
	}
	d.Kill()
	d.Kill() // once is enough
	d.Stop()
}

func TestDaemonsShareNothing(t *testing.T) {
	t.Setenv("TINE_EPHEMERAL", "nonsense") // the environment's configuration is not theirs
	t.Setenv("TINE_DATA", "/nowhere")
	for _, d := range []*Daemon{Start(t), Start(t), Start(t, WithArguments("--ephemeral"))} {
		if count := createSession(t, d); count != 1 {
			t.Errorf("%d sessions, wanted 1", count)
		}
	}
}

func TestNothingIsLeftOfADaemon(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	r := record(t)
	if len(r.failures) > 0 {
		t.Fatalf("%q", r.failures)
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
}

func TestALongTemporaryDirectoryIsNotUsed(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("d", socketPathBytesMax))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", long)
	createSession(t, Start(t))
	if left, err := os.ReadDir(long); err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
}

func TestWhereTinedIsLookedFor(t *testing.T) {
	tined, err := exec.LookPath(os.Getenv("TINED"))
	if err != nil {
		t.Fatal(err)
	}
	if tined, err = filepath.Abs(tined); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TINED", "")
	t.Setenv("PATH", filepath.Dir(tined))
	Start(t)
	t.Setenv("PATH", "")
	t.Setenv("TINED", tined)
	Start(t)
	t.Setenv("TINED", "/nowhere/by-environment")
	Start(t, WithTined(tined))
	record(t).wantFailure(t, true, "/nowhere/by-environment", "$TINED", "tinetest.WithTined")
	record(t, WithTined("/nowhere/by-option")).wantFailure(t, true, "/nowhere/by-option")
	t.Setenv("TINED", "")
	record(t).wantFailure(t, true, `"tined"`, "$TINED", "tinetest.WithTined")
}

func TestADaemonThatBehavesBadlyFailsItsTest(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	plain := func(*options) {}
	for _, row := range []struct {
		behaviour string
		isFatal   bool
		words     string
		option    Option
	}{
		{"ends", true, "tined ended: exit status 1", plain},
		{"is never ready", true, "not ready", func(o *options) { o.readyWait = time.Millisecond }},
		{"does not stop", false, "did not stop", func(o *options) { o.stopWait = time.Millisecond }},
		{"stops with an error", false, "tined ended: exit status 4", plain},
	} {
		t.Run(row.behaviour, func(t *testing.T) {
			t.Setenv("TINETEST_FAKE", row.behaviour)
			r := record(t, WithTined(self), row.option)
			r.wantFailure(t, row.isFatal, row.words)
			if row.behaviour != "is never ready" && !strings.Contains(r.failures[0], "no good") {
				t.Errorf("what it said is missing in %q", r.failures[0])
			}
		})
	}
}
