package tine

// One connection and the calls in flight on it.
//
// Who writes. The caller does, at once, and never waits: what the socket does not take is left to a
// goroutine. Whoever comes while another writes only leaves a frame behind, and where many are in
// flight the writer lets the others go first, so that their frames leave in one system call.
//
// Who reads. A caller that is alone on the connection waits in poll(2) for its own reply, for that
// is half as long as by way of the scheduler. As soon as there are two, or it has waited for a
// moment, the connection's goroutine reads for all.

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
	// The server refuses the 65th of a connection.
	inFlightMax = 64

	aloneWait       = 300 * time.Microsecond
	aloneFrameBytes = 32 << 10 // larger ones may have to wait until the server reads
	batchBytes      = 64 << 10
	batchRounds     = 4 // of one caller for the others
	crowd           = 4 // in flight: then the writer lets others go first
	idCounterMask   = 1<<25 - 1
)

type slotState byte

const (
	slotFree slotState = iota
	slotWaiting
	slotAnswered
	slotBroken
	slotAbandoned // its caller left; it counts as in flight until the reply comes
)

// slot is a place for a call in flight.
type slot struct {
	index byte
	state slotState
	sent  bool
	id    uint32
	reply []byte        // a Response; lent to the caller until the slot is released
	done  chan struct{} // one token: the state is no longer slotWaiting
}

// frame is a request on its way. Whoever takes it out of the queue owns it.
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
	wakes     chan struct{} // the reading goroutine

	mutex     sync.Mutex
	why       error // it broke
	replied   bool
	isReading bool // a caller or the goroutine does
	isWriting bool
	queue     []*frame
	inFlight  int // slots that are not free
	abandoned int
	counter   uint32
	free      []byte // indexes of slots
	waiting   []chan *slot
	slots     [inFlightMax]slot

	in inbox // of whoever reads

	batch  []*frame // of whoever writes
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

// call sends a frame and waits for the reply. The frame is taken. On success the slot is the
// caller's until it calls release.
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

// brokenError says that the connection broke under a call. Unsent, nothing of it left this process.
type brokenError struct {
	sent bool
	why  error
}

func (e *brokenError) Error() string { return e.why.Error() }

// takeSlot waits for a free slot. The mutex is held, and on success still is.
func (c *conn) takeSlot(ctx context.Context) (*slot, error) {
	if c.why != nil {
		why := c.why
		c.mutex.Unlock()
		return nil, &brokenError{why: why}
	}
	var s *slot
	if count := len(c.free); count > 0 {
		s = &c.slots[c.free[count-1]]
		c.free = c.free[:count-1]
		c.inFlight++
	} else if c.abandoned == inFlightMax {
		why := errors.New("it answered none of its calls in time")
		c.breakLocked(why)
		return nil, &brokenError{why: why}
	} else if s = c.queueForSlot(ctx); s == nil {
		if err := ctx.Err(); err != nil {
			return nil, contextError(err, false)
		}
		return nil, &brokenError{why: c.why}
	}
	c.counter++
	s.id = idBit | uint32(s.index) | c.counter&idCounterMask*inFlightMax
	s.state = slotWaiting
	s.sent = false
	return s, nil
}

// queueForSlot waits without the mutex until release hands over a slot; it is still in flight then.
// Nil, without the mutex: the connection broke or the context ended.
func (c *conn) queueForSlot(ctx context.Context) *slot {
	turn := make(chan *slot, 1)
	c.waiting = append(c.waiting, turn)
	c.mutex.Unlock()
	select {
	case s, isOpen := <-turn:
		if !isOpen {
			return nil
		}
		c.mutex.Lock()
		if c.why == nil {
			return s
		}
		c.mutex.Unlock()
		return nil
	case <-ctx.Done():
	}
	c.mutex.Lock()
	for i, other := range c.waiting {
		if other == turn {
			c.waiting = append(c.waiting[:i], c.waiting[i+1:]...)
			c.mutex.Unlock()
			return nil
		}
	}
	if s, isOpen := <-turn; isOpen { // it came at the same moment: the next one's
		c.freeSlot(s)
	}
	c.mutex.Unlock()
	return nil
}

// abandon ends the wait for a reply. False: there is one, or the connection is broken.
func (c *conn) abandon(s *slot) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if s.state != slotWaiting {
		<-s.done
		return false
	}
	s.state = slotAbandoned
	c.abandoned++
	if c.abandoned == inFlightMax && len(c.waiting) > 0 {
		c.breakLocked(errors.New("it answered none of its calls in time"))
		c.mutex.Lock()
	}
	return true
}

// release gives a slot back.
func (c *conn) release(s *slot) {
	c.mutex.Lock()
	c.freeSlot(s)
	c.mutex.Unlock()
}

// releaseBroken gives back the slot of a call under which the connection broke. How far it came is
// read with the mutex: who reads may have found the break, and who writes be about to.
func (c *conn) releaseBroken(s *slot) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	err := &brokenError{sent: s.sent, why: c.why}
	c.freeSlot(s)
	return err
}

func (c *conn) freeSlot(s *slot) {
	s.state = slotFree
	s.id = 0
	if cap(s.reply) > inboxBytes {
		s.reply = nil
	}
	if len(c.waiting) > 0 {
		c.waiting[0] <- s
		c.waiting = c.waiting[1:]
		return
	}
	c.free = append(c.free, s.index)
	c.inFlight--
}

// Writing.

// write sends what is queued. It never waits for the socket: what that does not take at once, or
// what others go on to queue, a goroutine sends.
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

// writeRest goes on where write stopped, and waits for the socket.
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

// nextBatch takes frames out of the queue and returns their bytes. Nil: there are none, and
// whoever comes next is the writer.
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

// setSent notes on a frame's slot how far it came; the slot may have become another call's.
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

// writeFailed breaks the connection. If not a byte of the batch was taken, none of its calls ran.
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

// readAlone receives for a caller that has nobody beside it, and for those who come meanwhile,
// until its reply is there or it has waited for long enough.
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
			// What is still in flight, the goroutine reads.
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

// readForAll is the connection's goroutine. It reads while it is its turn and something is in
// flight; on tcp always, for there a dead server is seen by reading only.
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

// deliver hands what was received to its owners. A reply that nobody waits for is dropped.
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

// breakWith ends the connection: what is in flight fails, the next call connects anew.
func (c *conn) breakWith(why error) {
	c.mutex.Lock()
	c.breakLocked(why)
}

// breakLocked does so with the mutex, which it unlocks.
func (c *conn) breakLocked(why error) {
	if c.why != nil {
		c.mutex.Unlock()
		return
	}
	c.why = why
	c.isBroken.Store(true)
	c.link.lost(c, c.replied, why) // before anybody wakes up, who would be given this one again
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
	c.direct.shutdown() // whoever is inside a system call comes back
	c.socket.Close()
}

// plainError leaves out the addresses that package net puts around an error of the system.
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

// status says that the connection to an address broke under a call.
func (e *brokenError) status(address string) *statusError {
	const format = "the connection to %s broke before the reply came: %s%s"
	known := ""
	if e.sent {
		known = "; whether the call was done is not known"
	}
	return failure(codes.Unavailable, Unavailable, format, address, e.why, known)
}
