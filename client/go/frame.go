package tine

// The framing of the Scalability Protocols, as NNG implements them (docs/wire.md, "On a socket").
// Each side sends a hello of eight bytes, then frames. On a Unix socket the byte 01 stands in front
// of a frame's length, on tcp nothing does.

import (
	"encoding/binary"
	"errors"
)

const (
	helloBytes  = 8
	idBytes     = 4
	lengthBytes = 8
	frameType   = 1
	idBit       = 1 << 31 // set in each request's id

	requestBytesMax = 16 << 20
	// A page of 16 MiB with its envelope.
	frameBytesMax = requestBytesMax + 64<<10

	inboxBytes       = 32 << 10
	largeBytesAtOnce = 1 << 20
)

// protocol is the role that a side of a connection names in its hello.
type protocol byte

const (
	protocolPub protocol = 0x20
	protocolSub protocol = 0x21
	protocolReq protocol = 0x30
	protocolRep protocol = 0x31
)

// transport is the kind of socket, which decides how a frame begins.
type transport byte

const (
	transportIPC transport = iota
	transportTCP
)

var (
	errFrameType    = errors.New("it sent a frame of an unknown type")
	errFrameTooLong = errors.New("it sent a frame that is too long")
	errFrameNoID    = errors.New("it sent a reply without an id")
)

func hello(p protocol) [helloBytes]byte {
	return [helloBytes]byte{0, 'S', 'P', 0, 0, byte(p), 0, 0}
}

// headerBytes returns how many bytes stand in front of a payload.
func (t transport) headerBytes() int {
	if t == transportIPC {
		return 1 + lengthBytes
	}
	return lengthBytes
}

// putHeader writes the header of a frame.
func (t transport) putHeader(out []byte, payloadBytes int) {
	if t == transportIPC {
		out[0] = frameType
		out = out[1:]
	}
	binary.BigEndian.PutUint64(out, uint64(payloadBytes))
}

// inbox splits a stream of bytes into frames. It returns small frames where they were received; one
// read may bring several. A large frame gets memory of its own in two steps: up to largeBytesAtOnce
// for its first bytes, and all of it when these have come. So a peer that sends a length and
// nothing else cannot make the client allocate frameBytesMax, and at most largeBytesAtOnce is
// copied.
type inbox struct {
	transport  transport
	buffer     []byte
	begin, end int    // of the bytes in the buffer that next has not returned
	large      []byte // the bytes of a large payload that have come
	largeBytes int    // its whole length; 0: there is none
}

// space returns where to read the next bytes to. The caller then calls took.
func (in *inbox) space() []byte {
	if in.largeBytes > 0 {
		if len(in.large) == cap(in.large) {
			whole := make([]byte, len(in.large), in.largeBytes)
			copy(whole, in.large)
			in.large = whole
		}
		return in.large[len(in.large):cap(in.large)]
	}
	if in.buffer == nil {
		in.buffer = make([]byte, inboxBytes)
	}
	if in.begin > 0 {
		copy(in.buffer, in.buffer[in.begin:in.end])
		in.end -= in.begin
		in.begin = 0
	}
	return in.buffer[in.end:]
}

// took notes how many bytes were read into space.
func (in *inbox) took(count int) {
	if in.largeBytes > 0 {
		in.large = in.large[:len(in.large)+count]
	} else {
		in.end += count
	}
}

// next returns the next payload, or nil if more bytes are needed. After an error the stream cannot
// be used. The caller owns a payload if isOwned is set; otherwise it may use it until it calls
// space.
func (in *inbox) next() (payload []byte, isOwned bool, err error) {
	if in.largeBytes > 0 {
		if len(in.large) < in.largeBytes {
			return nil, false, nil
		}
		payload, in.large, in.largeBytes = in.large, nil, 0
		return payload, true, nil
	}
	header := in.transport.headerBytes()
	received := in.buffer[in.begin:in.end]
	if in.transport == transportIPC && len(received) > 0 && received[0] != frameType {
		return nil, false, errFrameType
	}
	if len(received) < header {
		return nil, false, nil
	}
	length := binary.BigEndian.Uint64(received[header-lengthBytes:])
	if length > frameBytesMax {
		return nil, false, errFrameTooLong
	}
	whole := header + int(length)
	if len(received) >= whole {
		in.begin += whole
		return received[header:whole:whole], false, nil
	}
	if whole > len(in.buffer) {
		in.largeBytes = int(length)
		in.large = append(make([]byte, 0, min(in.largeBytes, largeBytesAtOnce)), received[header:]...)
		in.begin, in.end = 0, 0
	}
	return nil, false, nil
}
