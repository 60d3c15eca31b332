package tine

// The half of a watch that listens to the bus.

import (
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/tine-store/tine/client/go/tinev1"
)

// keepBus subscribes if there is no subscription and it is time for an attempt. The watch must list
// once afterwards.
func (w *watch) keepBus() {
	path := w.client.address.events()
	if w.bus != nil || path == "" || time.Now().Before(w.subscribeAfter) {
		return
	}
	w.isBehind = true
	w.unsure = unsureMin
	var err error
	w.bus, err = subscribe(w.ctx, path)
	w.heard = time.Now()
	if err != nil {
		w.dropBus()
	}
}

// dropBus ends the subscription, or notes that there is none. The watch subscribes again later.
func (w *watch) dropBus() {
	if w.bus != nil {
		w.bus.close()
	}
	w.bus = nil
	w.toldNewest = 0
	pause := min(w.client.options.busRetry<<min(w.busFailures, 16), busRetryMax)
	w.busFailures++
	w.subscribeAfter = time.Now().Add(pause)
}

// takeOfBus waits for the next event on the bus. It returns nil if the watch is behind, has no bus,
// or has ended.
func (w *watch) takeOfBus() *tinev1.Event {
	for w.bus != nil && !w.isBehind && w.ctx.Err() == nil {
		isUnsure := !w.bus.isLive
		silentAt := w.silentAt()
		until := silentAt
		if listAt := time.Now().Add(w.unsure); isUnsure && listAt.Before(until) {
			until = listAt
		}
		message, err := w.bus.next(until)
		switch {
		case err != nil:
			w.dropBus()
		case message != nil:
			w.heard = time.Now()
			if !isUnsure {
				w.busFailures = 0 // only after a second message; some peers send one and no more
			}
			if event := w.takeMessage(message); event != nil {
				return event
			}
		case !time.Now().Before(silentAt):
			w.dropBus()
		case isUnsure:
			w.isBehind = true
			w.unsure = min(2*w.unsure, unsureMax)
		}
	}
	return nil
}

// silentAt returns when the watch gives up a bus that sends nothing. The time between two calls of
// RecvMsg does not count, because nothing is read then; messages that came wait in the socket.
func (w *watch) silentAt() time.Time {
	since := w.heard
	if w.asked.After(since) {
		since = w.asked
	}
	return since.Add(w.client.options.busSilence)
}

// takeMessage returns the event of a message, or nil if the watch does not want it. It looks at all
// messages, because those of other sessions move the position too.
func (w *watch) takeMessage(bytes []byte) *tinev1.Event {
	message, err := readBusMessage(bytes)
	if err != nil {
		w.dropBus()
		return nil
	}
	isMine := message.isUnder(w.topic)
	switch {
	case message.instanceID != w.instanceID:
		w.fallBehind(math.MaxUint64)
		return nil
	case message.isHeartbeat():
		if message.sequence > w.after {
			w.fallBehind(message.sequence)
		}
		return nil
	case message.sequence > 0 && message.sequence <= w.after: // listed already
		return nil
	case message.sequence > 0 && !w.isNext(&message, isMine):
		if isMine {
			w.fallBehind(message.sequence)
		}
		return nil
	}
	var event *tinev1.Event
	if isMine && strings.HasPrefix(message.kind, w.request.TypePrefix) {
		event = new(tinev1.Event)
		if err := proto.Unmarshal(message.event, event); err != nil {
			w.dropBus()
			return nil
		}
	}
	if message.sequence > 0 {
		w.after = message.sequence
	}
	return event
}

// isNext reports whether an event with a sequence is the next one of the watch. An event of a
// session names the session's previous event; if that is not past the position, no event is
// missing. When the session is purged, ListEvents decides what the watch gets.
func (w *watch) isNext(message *busMessage, isMine bool) bool {
	isOfSession := w.topic != "" && isMine
	if isOfSession && message.kind == kindSessionPurged {
		return false
	}
	if message.sequence == w.after+1 {
		return true
	}
	previous := message.previousOfSession
	return isOfSession && previous > 0 && previous <= w.after
}

// fallBehind notes that the bus has skipped events, up to a sequence that it named.
func (w *watch) fallBehind(toldNewest uint64) {
	w.isBehind = true
	w.toldNewest = toldNewest
}
