package tine

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// freePort returns an unused address on this host. Its port is outside the range from which the
// kernel takes ports by itself.
func freePort(t testing.TB) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		if listener, err := net.Listen("tcp", address); err == nil {
			listener.Close()
			return address
		}
	}
	t.Fatal("there is no free port")
	return ""
}

// waitForTCP waits until a daemon also answers on tcp.
func waitForTCP(t testing.TB, address, token string) {
	t.Helper()
	client := dial(t, "tcp://"+address, WithToken(token), WithRetry(limit))
	if err := health(within(t), client); err != nil {
		t.Fatal(err)
	}
}

func TestURLs(t *testing.T) {
	longest := strings.Repeat("p", socketPathBytesMax)
	for url, want := range map[string]address{
		"ipc:///run/tine.sock":   {transportIPC, "/run/tine.sock", false},
		"ipc://relative":         {transportIPC, "relative", false},
		"ipc://" + longest:       {transportIPC, longest, false},
		"tcp://127.0.0.1:7461":   {transportTCP, "127.0.0.1:7461", false},
		"tcp://[::1]:7461":       {transportTCP, "[::1]:7461", false},
		"ipc://" + longest + "p": {},
		"ipc://":                 {},
		"tcp://127.0.0.1":        {},
		"tcp://:7461":            {},
		"embedded:/store":        {},
		"http://127.0.0.1:7461":  {},
		"/run/tine.sock":         {},
	} {
		got, err := parseURL(url)
		if (err == nil) != (want != address{}) || err == nil && got != want {
			t.Errorf("%s is %+v: %v", url, got, err)
		}
		if _, dialErr := Dial(url); (dialErr == nil) != (err == nil) {
			t.Errorf("Dial(%q): %v", url, dialErr)
		}
	}
}

func TestASocketPathThatIsTooLongIsRefusedBeforeDialing(t *testing.T) {
	long := "/" + strings.Repeat("p", socketPathBytesMax)
	want := fmt.Sprintf("%q has 108 bytes; a socket's path has at most 107", long)
	check := func(url string, opts ...Option) {
		t.Helper()
		if _, err := Dial(url, opts...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; wanted %s", err, want)
		}
	}
	check("ipc://" + long)
	t.Setenv("TINE_SOCKET", long)
	check("")
	t.Setenv("TINE_SOCKET", "")
	t.Setenv("XDG_RUNTIME_DIR", long)
	want = "/tine/tine.sock\" has 123 bytes; a socket's path has at most 107"
	check("")
}

func TestTheBusIsBesideTheSocket(t *testing.T) {
	for path, want := range map[string]string{
		"/run/tine.sock":                       "/run/tine.events",
		"/run/tine":                            "/run/tine.events",
		".sock":                                ".events",
		strings.Repeat("p", 101):               "",
		strings.Repeat("p", 100):               strings.Repeat("p", 100) + ".events",
		strings.Repeat("p", 100) + ".sock":     strings.Repeat("p", 100) + ".events",
		strings.Repeat("p", 101) + ".sock":     "",
		strings.Repeat("p", 99) + ".sock.sock": "",
	} {
		a := address{transport: transportIPC, target: path}
		if got := a.events(); got != want {
			t.Errorf("%s: %q, wanted %q", path, got, want)
		}
	}
}

func TestWithoutAURLTheClientLooksWhereTheCommandLineDoes(t *testing.T) {
	inTmp := fmt.Sprintf("/tmp/tine-%d/tine.sock", os.Geteuid())
	for _, row := range []struct{ url, socket, runtime, want string }{
		{"", "", "", inTmp},
		{"", "", "relative", inTmp},
		{"", "", "/run/user/7", "/run/user/7/tine/tine.sock"},
		{"", "/own.sock", "/run/user/7", "/own.sock"},
		{"", "ipc:///own.sock", "", "/own.sock"},
		{"", "tcp://127.0.0.1:7461", "", "127.0.0.1:7461"},
		{"ipc:///first.sock", "/own.sock", "/run/user/7", "/first.sock"},
		{"tcp://127.0.0.1:7462", "", "", "127.0.0.1:7462"},
	} {
		t.Setenv("TINE_URL", row.url)
		t.Setenv("TINE_SOCKET", row.socket)
		t.Setenv("XDG_RUNTIME_DIR", row.runtime)
		got, err := parseURL("")
		if err != nil || got.target != row.want || got.isInTmp != (row.want == inTmp) {
			t.Errorf("%+v: %+v, %v", row, got, err)
		}
	}
}

func TestADirectoryOfOthersIsNotTrusted(t *testing.T) {
	directory := scratch(t)
	a := address{transportIPC, filepath.Join(directory, "tine.sock"), true}
	if err := a.check(); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(directory, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := a.check(); err == nil {
		t.Error("a directory that all can write to")
	}
	a.isInTmp = false // a place that the caller has named is not checked
	if err := a.check(); err != nil {
		t.Error(err)
	}
}
