package tine

// One connection and the calls in flight on it.
//
// Writing: the caller writes its frame at once and never blocks. A goroutine writes what the socket
// does not take. A caller that finds another one writing only queues its frame. If many calls are
// in flight, the writer first yields to the others, so that one system call sends all their frames.
//
// Reading: a caller that is alone on the connection waits for its reply in poll(2), which takes
// half as long as a wake-up by the scheduler. If a second call begins, or after a short wait, the
// connection's goroutine reads for all.

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
)

const (
	// The server refuses a 65th call on a connection.
	inFlightMax = 64

	aloneWait       = 300 * time.Microsecond
	aloneFrameBytes = 32 << 10 // a larger frame may have to wait until the server reads
	batchBytes      = 64 << 10
	batchRounds     = 4 // that a caller writes for others before a goroutine goes on
	crowd           = 4 // calls in flight from which on the writer yields first
	idCounterMask   = 1<<25 - 1
)

// frame is an encoded request. The queue owns it, then the writer that takes it out.
type frame struct {
	bytes []byte
	id    uint32
}

var frames = sync.Pool{New: func() any { return new(frame) }}

func (f *frame) release() {
	if cap(f.bytes) > batchBytes {
		f.bytes = nil
	}
	frames.Put(f)
}

type conn struct {
	link      *link
	socket    net.Conn
	direct    direct
	transport transport
	isBroken  atomic.Bool
	wakes     chan struct{} // wakes the reading goroutine

	mutex     sync.Mutex
	why       error // why the connection broke; nil: it did not
	replied   bool
	isReading bool // by a caller or by the goroutine
	isWriting bool
	queue     []*frame
	inFlight  int // slots that are not free
	abandoned int
	counter   uint32
	free      []byte // indexes of the free slots
	waiting   []chan *slot
	slots     [inFlightMax]slot

	in inbox // for the one who reads

	batch  []*frame // for the one who writes, and the next field
	gather []byte
}

func newConn(l *link, socket net.Conn, t transport) *conn {
	c := &conn{
		link:      l,
		socket:    socket,
		transport: t,
		wakes:     make(chan struct{}, 1),
		counter:   randomUint32(),
		in:        inbox{transport: t},
	}
	for i := range c.slots {
		c.slots[i].index = byte(i)
		c.slots[i].done = make(chan struct{}, 1)
		c.free = append(c.free, byte(inFlightMax-1-i))
	}
	c.direct.open(socket)
	if t == transportTCP {
		c.isReading = true
		c.wakes <- struct{}{}
	}
	go c.readForAll()
	return c
}

// call sends a frame, which it takes over, and waits for the reply. On success the caller must
// release the slot.
func (c *conn) call(ctx context.Context, f *frame) (*slot, error) {
	c.mutex.Lock()
	s, err := c.takeSlot(ctx)
	if err != nil {
		f.release()
		return nil, err
	}
	f.id = s.id
	binary.BigEndian.PutUint32(f.bytes[c.transport.headerBytes():], s.id)
	isAlone := c.inFlight == 1 && !c.isReading && c.direct.canWait() && len(f.bytes) <= aloneFrameBytes
	if !c.isReading {
		c.isReading = true
		if !isAlone {
			c.wakes <- struct{}{}
		}
	}
	c.queue = append(c.queue, f)
	isWriter := !c.isWriting
	c.isWriting = true
	isCrowded := c.inFlight >= crowd
	c.mutex.Unlock()

	if isWriter {
		if isCrowded {
			runtime.Gosched()
		}
		c.write()
	}
	if isAlone {
		c.readAlone(ctx, s)
	}
	select {
	case <-s.done:
	case <-ctx.Done():
		if c.abandon(s) {
			return nil, contextError(ctx.Err(), true)
		}
	}
	if s.state == slotAnswered {
		return s, nil
	}
	return nil, c.releaseBroken(s)
}

// brokenError is the error of a call whose connection broke. If it was not sent, no byte of it has
// left this process.
type brokenError struct {
	sent bool
	why  error
}

func (e *brokenError) Error() string { return e.why.Error() }

// Writing.

// write sends the queued frames. It never waits for the socket: a goroutine sends what the socket
// does not take at once, and what others queue meanwhile.
func (c *conn) write() {
	for round := 0; ; round++ {
		bytes := c.nextBatch()
		if bytes == nil {
			return
		}
		count, err := c.direct.write(bytes)
		if err != nil {
			c.writeFailed(count, err)
			return
		}
		if count < len(bytes) || round == batchRounds {
			go c.writeRest(bytes[count:])
			return
		}
		c.releaseBatch()
	}
}

// writeRest goes on where write stopped. It waits for the socket.
func (c *conn) writeRest(bytes []byte) {
	for bytes != nil {
		if _, err := c.socket.Write(bytes); err != nil {
			c.writeFailed(1, err)
			return
		}
		c.releaseBatch()
		bytes = c.nextBatch()
	}
}

// nextBatch takes frames out of the queue and returns their bytes. It returns nil if there are
// none; the caller is then no longer the writer.
func (c *conn) nextBatch() []byte {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(c.queue) == 0 || c.why != nil {
		c.isWriting = false
		return nil
	}
	count, size := 0, 0
	for count < len(c.queue) && (count == 0 || size+len(c.queue[count].bytes) <= batchBytes) {
		f := c.queue[count]
		size += len(f.bytes)
		c.setSent(f, true)
		count++
	}
	c.batch = append(c.batch[:0], c.queue[:count]...)
	c.queue = c.queue[:copy(c.queue, c.queue[count:])]
	if count == 1 {
		return c.batch[0].bytes
	}
	c.gather = c.gather[:0]
	for _, f := range c.batch {
		c.gather = append(c.gather, f.bytes...)
	}
	return c.gather
}

// setSent notes in a frame's slot whether the frame was sent, unless the slot is another call's by
// now.
func (c *conn) setSent(f *frame, sent bool) {
	if s := &c.slots[f.id%inFlightMax]; s.id == f.id {
		s.sent = sent
	}
}

func (c *conn) releaseBatch() {
	for _, f := range c.batch {
		f.release()
	}
}

// writeFailed breaks the connection. If the socket took no byte of the batch, none of its calls was
// sent.
func (c *conn) writeFailed(count int, err error) {
	c.mutex.Lock()
	if count == 0 {
		for _, f := range c.batch {
			c.setSent(f, false)
		}
	}
	c.breakLocked(plainError(err))
}

// Reading.

// readAlone receives for a caller that is alone on the connection, and for calls that begin
// meanwhile, until the caller's reply has come or aloneWait is over.
func (c *conn) readAlone(ctx context.Context, s *slot) {
	wait := aloneWait
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline))
	}
	for {
		count, err := c.direct.read(c.in.space(), wait)
		c.mutex.Lock()
		if err == nil {
			err = c.deliver(count)
		}
		if err != nil {
			c.breakLocked(plainError(err))
			return
		}
		if count == 0 || s.state != slotWaiting {
			// The goroutine reads for the calls that are still in flight.
			if isLast := c.inFlight == 1 && s.state == slotAnswered; isLast {
				c.isReading = false
			} else if c.why == nil {
				c.wakes <- struct{}{}
			}
			c.mutex.Unlock()
			return
		}
		c.mutex.Unlock()
	}
}

// readForAll is the connection's goroutine. It reads while calls are in flight and no caller reads.
// On tcp it always reads, because only a read notices that the server is gone.
func (c *conn) readForAll() {
	for range c.wakes {
		for {
			count, err := c.socket.Read(c.in.space())
			if count == 0 && err != nil {
				c.breakWith(plainError(err))
				return
			}
			c.mutex.Lock()
			if err := c.deliver(count); err != nil {
				c.breakLocked(err)
				return
			}
			if c.inFlight == 0 && c.transport != transportTCP {
				c.isReading = false
				c.mutex.Unlock()
				break
			}
			c.mutex.Unlock()
		}
	}
}

// deliver gives each reply that was received to its call. It drops replies that no call waits for.
func (c *conn) deliver(count int) error {
	c.in.took(count)
	for {
		payload, isOwned, err := c.in.next()
		if payload == nil || err != nil {
			return err
		}
		if len(payload) < idBytes {
			return errFrameNoID
		}
		if !c.replied {
			c.replied = true
			c.link.replied()
		}
		id := binary.BigEndian.Uint32(payload)
		s := &c.slots[id%inFlightMax]
		switch {
		case s.id != id:
		case s.state == slotWaiting:
			if isOwned {
				s.reply = payload[idBytes:]
			} else {
				s.reply = append(s.reply[:0], payload[idBytes:]...)
			}
			s.state = slotAnswered
			s.done <- struct{}{}
		case s.state == slotAbandoned:
			c.abandoned--
			c.freeSlot(s)
		}
	}
}

// Breaking.

// breakWith ends the connection. Its calls in flight fail; the next call makes a new connection.
func (c *conn) breakWith(why error) {
	c.mutex.Lock()
	c.breakLocked(why)
}

// breakLocked is breakWith for a caller that holds the mutex. It unlocks the mutex.
func (c *conn) breakLocked(why error) {
	if c.why != nil {
		c.mutex.Unlock()
		return
	}
	c.why = why
	c.isBroken.Store(true)
	c.link.lost(c, c.replied, why) // first, so that no caller that wakes up gets this connection again
	for i := range c.slots {
		if s := &c.slots[i]; s.state == slotWaiting {
			s.state = slotBroken
			s.done <- struct{}{}
		}
	}
	for _, turn := range c.waiting {
		close(turn)
	}
	c.waiting = nil
	c.queue = nil
	close(c.wakes)
	c.mutex.Unlock()
	c.direct.shutdown() // ends the system calls on the socket
	c.socket.Close()
}

// plainError returns the system's error without the addresses that package net adds.
func plainError(err error) error {
	var number syscall.Errno
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("it hung up")
	case errors.As(err, &number):
		return number
	}
	return err
}

// status returns the error as a status that names the server's address.
func (e *brokenError) status(address string) *statusError {
	const format = "the connection to %s broke before the reply came: %s%s"
	known := ""
	if e.sent {
		known = "; whether the call was done is not known"
	}
	return failure(codes.Unavailable, Unavailable, format, address, e.why, known)
}
