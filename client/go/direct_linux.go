package tine

import (
	"io"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// direct makes system calls on a socket in the calling goroutine, without the runtime's poller: a
// write that does not wait, and a read that waits for a short time. At most one goroutine may write
// at a time, and one read.
type direct struct {
	raw    syscall.RawConn // nil: the socket has none
	reads  transfer
	writes transfer
	wait   unix.Timespec
	wanted [1]unix.PollFd
}

// transfer holds the arguments and the results of a system call for its callback. A closure for
// each call would cost an allocation.
type transfer struct {
	run   func(fd uintptr) bool
	bytes []byte
	count int
	err   error
}

func (d *direct) open(socket net.Conn) {
	connection, ok := socket.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := connection.SyscallConn()
	if err != nil {
		return
	}
	d.raw = raw
	d.reads.run = d.readOnce
	d.writes.run = d.writeOnce
}

// canWait reports whether read works.
func (d *direct) canWait() bool { return d.raw != nil }

// read waits for bytes and returns how many it read; 0 if none came in time.
func (d *direct) read(space []byte, wait time.Duration) (int, error) {
	d.reads.bytes = space
	d.wait = unix.NsecToTimespec(max(int64(wait), 0))
	if err := d.raw.Read(d.reads.run); err != nil {
		return 0, err
	}
	return d.reads.count, d.reads.err
}

func (d *direct) readOnce(fd uintptr) bool {
	d.reads.count, d.reads.err = 0, nil
	d.wanted[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	ready, _ := unix.Ppoll(d.wanted[:], &d.wait, nil)
	if ready <= 0 {
		return true
	}
	count, err := syscall.Read(int(fd), d.reads.bytes)
	switch {
	case err == syscall.EAGAIN || err == syscall.EINTR:
	case err != nil:
		d.reads.err = err
	case count == 0:
		d.reads.err = io.EOF
	default:
		d.reads.count = count
	}
	return true
}

// write writes what the socket takes at once and returns how much that was.
func (d *direct) write(bytes []byte) (int, error) {
	if d.raw == nil {
		return 0, nil
	}
	d.writes.bytes = bytes
	if err := d.raw.Write(d.writes.run); err != nil {
		return 0, err
	}
	return d.writes.count, d.writes.err
}

func (d *direct) writeOnce(fd uintptr) bool {
	d.writes.count, d.writes.err = 0, nil
	count, err := syscall.Write(int(fd), d.writes.bytes)
	switch {
	case err == syscall.EAGAIN || err == syscall.EINTR:
	case err != nil:
		d.writes.err = err
	default:
		d.writes.count = count
	}
	return true
}

// shutdown ends all system calls on the socket.
func (d *direct) shutdown() {
	if d.raw != nil {
		_ = d.raw.Control(func(fd uintptr) { _ = syscall.Shutdown(int(fd), syscall.SHUT_RDWR) })
	}
}
