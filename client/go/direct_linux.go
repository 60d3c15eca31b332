package tine

import (
	"io"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// direct makes system calls on a socket from the calling goroutine, past the runtime's poller: a
// write that does not wait, and a read that waits for a moment. One goroutine at a time writes, and
// one reads.
type direct struct {
	raw    syscall.RawConn // nil: there is none
	reads  transfer
	writes transfer
	wait   unix.Timespec
	wanted [1]unix.PollFd
}

// transfer is the arguments and the outcome of a system call, where its callback finds them: a
// closure for each would cost an allocation.
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

// canWait says whether read waits without the runtime.
func (d *direct) canWait() bool { return d.raw != nil }

// read waits for so long for bytes and takes them. Zero: none came.
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

// write gives the socket what it takes at once.
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

// shutdown makes all system calls on the socket return.
func (d *direct) shutdown() {
	if d.raw != nil {
		_ = d.raw.Control(func(fd uintptr) { _ = syscall.Shutdown(int(fd), syscall.SHUT_RDWR) })
	}
}
