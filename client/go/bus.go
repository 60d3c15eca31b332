package tine

// A subscription to the bus: a second Unix socket on which tined sends each event as soon as it is
// committed (docs/wire.md, "The bus"). The bus may lose events; the watch notices that and lists.

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

const subscribeWait = time.Second

var errBusMessage = errors.New("a message of the bus is malformed")

// bus is a subscription to all events.
type bus struct {
	socket net.Conn
	in     inbox
	isLive bool // a message has come, so the server knows this subscriber
	forget func() bool
}

// subscribe connects to the bus. The connection closes when the context ends.
func subscribe(ctx context.Context, path string) (*bus, error) {
	limited, cancel := context.WithTimeout(ctx, subscribeWait)
	defer cancel()
	socket, err := dialSP(limited, "unix", path, protocolSub, protocolPub)
	if err != nil {
		return nil, err
	}
	b := &bus{socket: socket, in: inbox{transport: transportIPC}}
	b.forget = context.AfterFunc(ctx, func() { socket.Close() })
	return b, nil
}

func (b *bus) close() {
	b.forget()
	b.socket.Close()
}

// next waits for a message, which is valid until the next call. It returns nil if none came in
// time.
func (b *bus) next(until time.Time) ([]byte, error) {
	isSet := false
	for {
		message, _, err := b.in.next()
		if err != nil || message != nil {
			b.isLive = b.isLive || message != nil
			return message, err
		}
		if !isSet {
			isSet = true
			if err := b.socket.SetReadDeadline(until); err != nil {
				return nil, err
			}
		}
		count, err := b.socket.Read(b.in.space())
		b.in.took(count)
		if count == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, nil
		}
		if count == 0 && err != nil {
			return nil, plainError(err)
		}
	}
}

// busMessage is what a watch needs from a message before it decodes the event.
type busMessage struct {
	topic             string
	sequence          uint64
	previousOfSession uint64
	instanceID, kind  string // kind: the event's type
	event             []byte
}

const topicHeartbeat = "heartbeat"

// readBusMessage parses a message: a topic, a zero byte, an encoded event.
func readBusMessage(message []byte) (busMessage, error) {
	topic, event, found := bytes.Cut(message, []byte{0})
	if !found || !utf8.Valid(topic) {
		return busMessage{}, errBusMessage
	}
	out := busMessage{topic: string(topic), event: event}
	for len(event) > 0 {
		number, kind, value, size := consumeField(event)
		if size < 0 || kind == protowire.BytesType && isEventText(number) && !utf8.Valid(value) {
			return out, errBusMessage
		}
		event = event[size:]
		out.take(number, kind, value)
	}
	return out, nil
}

// isEventText reports whether this field of an Event is a string.
func isEventText(number protowire.Number) bool {
	return number >= 3 && number <= 8 || number == 12
}

func (m *busMessage) take(number protowire.Number, kind protowire.Type, value []byte) {
	switch kind {
	case protowire.VarintType:
		count, _ := protowire.ConsumeVarint(value)
		switch number {
		case 1:
			m.sequence = count
		case 2:
			m.previousOfSession = count
		}
	case protowire.BytesType:
		switch number {
		case 3:
			m.instanceID = string(value)
		case 5:
			m.kind = string(value)
		}
	}
}

func (m *busMessage) isHeartbeat() bool { return m.topic == topicHeartbeat }

// isUnder reports whether the message is not a heartbeat and its topic has this prefix.
func (m *busMessage) isUnder(prefix string) bool {
	return !m.isHeartbeat() && strings.HasPrefix(m.topic, prefix)
}
