package tine

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tine-store/tine/client/go/tinetest"
)

// goRun runs a program of this module against a daemon.
func goRun(t *testing.T, d *tinetest.Daemon, arguments ...string) string {
	t.Helper()
	command := exec.Command("go", append([]string{"run"}, arguments...)...)
	command.Env = append(os.Environ(), "TINE_SOCKET="+d.Socket())
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return string(output)
}

func TestTheProgramOfTheReadmeRuns(t *testing.T) {
	d := startDaemon(t)
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) != 2 {
		t.Fatalf("the page has %d blocks of Go; wanted a program and a test", len(blocks))
	}
	// The second block is a test of package tinetest.
	example, err := os.ReadFile(filepath.Join("tinetest", "example_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(example), string(blocks[1][1])) {
		t.Errorf("tinetest/example_test.go does not have this of the page:\n%s", blocks[1][1])
	}
	program := filepath.Join(scratch(t), "main.go")
	if err := os.WriteFile(program, blocks[0][1], 0o600); err != nil {
		t.Fatal(err)
	}
	// The program is built as if it were a file of this module.
	place, err := filepath.Abs(filepath.Join("examples", "readme", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{place: program}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(scratch(t), "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	output := goRun(t, d, "-overlay="+file, "./examples/readme")
	if output != "message.appended\nWhere do we begin?\nMESSAGE_NOT_FOUND\n" {
		t.Errorf("%q", output)
	}
}

func TestTheExampleAgentDoesItsTurn(t *testing.T) {
	d := startDaemon(t)
	output := goRun(t, d, "./examples/agent")
	for _, words := range []string{
		"nowhere.txt: 0 lines",
		"140 tokens in, 42 out, 300000 nano-USD",
		"the fork how-long-again goes on after 1 message(s)",
		"part.replaced", "message.sealed", "message.appended",
	} {
		if !strings.Contains(output, words) {
			t.Errorf("%q is missing in\n%s", words, output)
		}
	}
}
