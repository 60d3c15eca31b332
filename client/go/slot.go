package tine

// The calls in flight on a connection, each in a slot. Further calls wait for a free one.

import (
	"context"
	"errors"
)

type slotState byte

const (
	slotFree slotState = iota
	slotWaiting
	slotAnswered
	slotBroken
	slotAbandoned // the caller has left; the call is in flight until its reply comes
)

// slot holds one call in flight.
type slot struct {
	index byte
	state slotState
	sent  bool
	id    uint32
	reply []byte        // a Response; the caller may use it until it releases the slot
	done  chan struct{} // receives one token when the state is no longer slotWaiting
}

// takeSlot waits for a free slot. The caller must hold the mutex; takeSlot unlocks it on failure.
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

// queueForSlot unlocks the mutex and waits until release hands over a slot, which still counts as
// in flight. It returns with the mutex locked, or nil with the mutex unlocked if the connection
// broke or the context ended.
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
	if s, isOpen := <-turn; isOpen { // it came at the same moment; the next caller gets it
		c.freeSlot(s)
	}
	c.mutex.Unlock()
	return nil
}

// abandon gives up the wait for a reply. It returns false if the reply has come or the connection
// has broken.
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

// releaseBroken gives back the slot of a call whose connection broke. It reads with the mutex
// whether the call was sent, because the writer may be about to note it.
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
