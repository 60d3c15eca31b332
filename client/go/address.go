package tine

// Where tined listens: URLs and the default place.

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

const (
	schemeIPC      = "ipc://"
	schemeTCP      = "tcp://"
	schemeEmbedded = "embedded:"

	socketPathBytesMax = 107 // sun_path of the kernel holds 108, with the final NUL
)

// address is a parsed URL.
type address struct {
	transport transport
	target    string // a path, or host:port
	isInTmp   bool   // the default in /tmp, where another user could listen instead of tined
}

func (a address) String() string {
	return a.target
}

func (a address) network() string {
	if a.transport == transportTCP {
		return "tcp"
	}
	return "unix"
}

// events returns the path of the bus, which is beside the Unix socket; "" if there is none.
func (a address) events() string {
	path := strings.TrimSuffix(a.target, ".sock") + ".events"
	if a.transport != transportIPC || len(path) > socketPathBytesMax {
		return ""
	}
	return path
}

// parseURL parses a URL. An empty one means tined's default address.
func parseURL(url string) (address, error) {
	if url == "" {
		return defaultAddress()
	}
	if path, ok := strings.CutPrefix(url, schemeIPC); ok {
		return ipcAddress(path)
	}
	if target, ok := strings.CutPrefix(url, schemeTCP); ok {
		host, port, err := net.SplitHostPort(target)
		if err != nil || host == "" || port == "" {
			return address{}, fmt.Errorf("tine: %q is not tcp://HOST:PORT", url)
		}
		return address{transport: transportTCP, target: target}, nil
	}
	if strings.HasPrefix(url, schemeEmbedded) {
		return address{}, errors.New("tine: a store in the process (embedded:) is for C only; " +
			"this client calls tined by ipc://PATH or tcp://HOST:PORT")
	}
	return address{}, fmt.Errorf("tine: the URL %q is neither ipc://PATH nor tcp://HOST:PORT", url)
}

func ipcAddress(path string) (address, error) {
	if path == "" || strings.ContainsRune(path, 0) {
		return address{}, fmt.Errorf("tine: %q is not the path of a socket: ipc://PATH", path)
	}
	if err := checkPathLength(path); err != nil {
		return address{}, err
	}
	return address{transport: transportIPC, target: path}, nil
}

func checkPathLength(path string) error {
	if len(path) > socketPathBytesMax {
		return fmt.Errorf("tine: %q has %d bytes; a socket's path has at most %d", path, len(path),
			socketPathBytesMax)
	}
	return nil
}

// defaultAddress returns the address that the command line uses too: $TINE_URL, $TINE_SOCKET (a
// path or a URL), or tined's default socket under $XDG_RUNTIME_DIR or /tmp.
func defaultAddress() (address, error) {
	if url := os.Getenv("TINE_URL"); url != "" {
		return parseURL(url)
	}
	if socket := os.Getenv("TINE_SOCKET"); socket != "" {
		if strings.Contains(socket, "://") || strings.HasPrefix(socket, schemeEmbedded) {
			return parseURL(socket)
		}
		return ipcAddress(socket)
	}
	if runtime := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(runtime) {
		return ipcAddress(filepath.Join(runtime, "tine", "tine.sock"))
	}
	a, err := ipcAddress(fmt.Sprintf("/tmp/tine-%d/tine.sock", os.Geteuid()))
	a.isInTmp = true
	return a, err
}

// check returns an error if the socket is in a directory under /tmp in which other users could
// listen.
func (a address) check() error {
	if !a.isInTmp {
		return nil
	}
	directory := filepath.Dir(a.target)
	found, err := os.Lstat(directory)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !found.IsDir() || found.Mode().Perm()&0o022 != 0 || !isOwn(found) {
		return fmt.Errorf("%s belongs to others, or others can write to it; name another socket",
			directory)
	}
	return nil
}
