package tine

// Scalability Protocols, as NNG speaks them (docs/wire.md, "On a socket"): a hello of eight bytes
// from each side, then frames. On a Unix socket a frame begins with the byte 01, on tcp with its
// length at once.

import (
	"encoding/binary"
	"errors"
)

const (
	helloBytes  = 8
	idBytes     = 4
	lengthBytes = 8
	frameType   = 1
	idBit       = 1 << 31 // of every request's id

	requestBytesMax = 16 << 20
	// A page of 16 MiB and its envelope.
	frameBytesMax = requestBytesMax + 64<<10

	inboxBytes       = 32 << 10
	largeBytesAtOnce = 1 << 20
)

// protocol is what a side of a connection says that it is.
type protocol byte

const (
	protocolPub protocol = 0x20
	protocolSub protocol = 0x21
	protocolReq protocol = 0x30
	protocolRep protocol = 0x31
)

// transport is what a URL's scheme says of the frames.
type transport byte

const (
	transportIPC transport = iota
	transportTCP
)

var (
	errFrameType    = errors.New("it sent a frame that is none of SP")
	errFrameTooLong = errors.New("it sent a frame that is too long")
	errFrameNoID    = errors.New("it sent a reply without an id")
)

func hello(p protocol) [helloBytes]byte {
	return [helloBytes]byte{0, 'S', 'P', 0, 0, byte(p), 0, 0}
}

// headerBytes is how many bytes come before a payload.
func (t transport) headerBytes() int {
	if t == transportIPC {
		return 1 + lengthBytes
	}
	return lengthBytes
}

// putHeader writes the header of a frame whose payload has so many bytes.
func (t transport) putHeader(out []byte, payloadBytes int) {
	if t == transportIPC {
		out[0] = frameType
		out = out[1:]
	}
	binary.BigEndian.PutUint64(out, uint64(payloadBytes))
}

// inbox cuts a stream of bytes into frames. Small frames are handed out where they were received,
// several of one read. A large one gets memory of its own in two steps: up to largeBytesAtOnce for
// its first bytes, and the rest when these have come. So a peer that sends a length and nothing
// else does not make the client allocate frameBytesMax, and at most largeBytesAtOnce is copied.
type inbox struct {
	transport  transport
	buffer     []byte
	begin, end int    // of what is in the buffer and not handed out
	large      []byte // what came of a large payload
	largeBytes int    // how long it becomes; 0: none is on its way
}

// space returns where the next bytes are to be read to; then call took.
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

// took says that so many bytes were read to where space said.
func (in *inbox) took(count int) {
	if in.largeBytes > 0 {
		in.large = in.large[:len(in.large)+count]
	} else {
		in.end += count
	}
}

// next returns the next payload, or nil when more bytes are needed. An error is the end of the
// stream. An owned payload is the caller's; another one is lent until space is called.
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
