//go:build !linux

package tine

import (
	"net"
	"time"
)

// direct does nothing on systems other than Linux: the runtime's poller does all reading and
// writing.
type direct struct{}

func (*direct) open(net.Conn) {}

func (*direct) canWait() bool { return false }

func (*direct) read([]byte, time.Duration) (int, error) { return 0, nil }

func (*direct) write([]byte) (int, error) { return 0, nil }

func (*direct) shutdown() {}
