package tine

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/tine-store/tine/client/go/tinev1"
)

// repository is the root of the source tree.
var repository = filepath.Join("..", "..")

// hexBytes is written in JSON as text in hex, or as {"repeat": "61", "count": 3}.
type hexBytes []byte

func (h *hexBytes) UnmarshalJSON(text []byte) error {
	var plain string
	if err := json.Unmarshal(text, &plain); err == nil {
		decoded, err := hex.DecodeString(plain)
		*h = decoded
		return err
	}
	var long struct {
		Repeat string
		Count  int
	}
	if err := json.Unmarshal(text, &long); err != nil {
		return err
	}
	decoded, err := hex.DecodeString(strings.Repeat(long.Repeat, long.Count))
	*h = decoded
	return err
}

// vectors is the content of tests/wire/vectors.json.
type vectors struct {
	Hellos []struct {
		Name, Client string
		Hex          hexBytes
		OK           bool
	}
	Frames []struct {
		Name, Transport, Then string
		Hex                   hexBytes
		Payloads              []hexBytes
	}
	Requests []struct {
		Name, Method, Traceparent, Token string
		OperationID                      string `json:"operation_id"`
		TimeoutMS                        int64  `json:"timeout_ms"`
		Body, Hex                        hexBytes
	}
	Responses []struct {
		Name, Message, Reason string
		Hex, Body             hexBytes
		OK                    bool
		Code                  int
	}
	Events []struct {
		Name, Topic, Type string
		SessionID         string `json:"session_id"`
		Sequence          uint64
		Hex               hexBytes
		OK                bool
	}
}

func readVectors(t testing.TB) *vectors {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "tests", "wire", "vectors.json"))
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return &v
}

func TestVectorsOfHellos(t *testing.T) {
	for _, vector := range readVectors(t).Hellos {
		t.Run(vector.Name, func(t *testing.T) {
			wanted := map[string]protocol{"req": protocolRep, "sub": protocolPub}[vector.Client]
			err := checkHello([helloBytes]byte(vector.Hex), wanted)
			if (err == nil) != vector.OK {
				t.Errorf("accepted: %v; wanted: %v", err == nil, vector.OK)
			}
		})
	}
}

// cut feeds a stream to an inbox in steps of step bytes. It returns the payloads, and how the
// stream ended.
func cut(kind transport, stream []byte, step int) (payloads [][]byte, then string) {
	in := inbox{transport: kind}
	fed := 0
	for {
		payload, _, err := in.next()
		switch {
		case err != nil:
			return payloads, "error"
		case payload != nil:
			payloads = append(payloads, bytes.Clone(payload))
			continue
		case fed == len(stream):
			if in.begin == in.end && in.largeBytes == 0 {
				return payloads, "end"
			}
			return payloads, "more"
		}
		space := in.space()
		count := copy(space[:min(step, len(space))], stream[fed:])
		in.took(count)
		fed += count
	}
}

func TestVectorsOfFrames(t *testing.T) {
	for _, vector := range readVectors(t).Frames {
		t.Run(vector.Name, func(t *testing.T) {
			kind := transportIPC
			if vector.Transport == "tcp" {
				kind = transportTCP
			}
			for _, step := range []int{1, 3, 7, len(vector.Hex) + 1} {
				payloads, then := cut(kind, vector.Hex, step)
				if then != vector.Then {
					t.Errorf("in steps of %d then %s, wanted %s", step, then, vector.Then)
				}
				if len(payloads) != len(vector.Payloads) {
					t.Fatalf("%d payloads, wanted %d", len(payloads), len(vector.Payloads))
				}
				for i, payload := range payloads {
					if !bytes.Equal(payload, vector.Payloads[i]) {
						t.Errorf("payload %d is %x, wanted %x", i, payload, vector.Payloads[i])
					}
				}
			}
		})
	}
}

// A length alone does not make the client allocate the whole frame.
func TestALongFrameIsReadAsItComes(t *testing.T) {
	payload := bytes.Repeat([]byte("0123456789abcdef"), 5<<20/16)
	stream := make([]byte, transportIPC.headerBytes(), len(payload)+64)
	transportIPC.putHeader(stream, len(payload))
	in := inbox{transport: transportIPC}
	in.took(copy(in.space(), stream))
	if _, _, err := in.next(); err != nil {
		t.Fatal(err)
	}
	if cap(in.large) > largeBytesAtOnce {
		t.Errorf("a header took %d bytes", cap(in.large))
	}
	short := []byte{frameType, 0, 0, 0, 0, 0, 0, 0, 2, 'h', 'i'}
	payloads, then := cut(transportIPC, append(append(stream, payload...), short...), 100_000)
	if then != "end" || len(payloads) != 2 || !bytes.Equal(payloads[0], payload) ||
		string(payloads[1]) != "hi" {
		t.Errorf("%d payloads, then %s", len(payloads), then)
	}
}

func TestVectorsOfRequests(t *testing.T) {
	for _, vector := range readVectors(t).Requests {
		t.Run(vector.Name, func(t *testing.T) {
			head := requestHead{
				method:      vector.Method,
				operationID: vector.OperationID,
				traceparent: vector.Traceparent,
				token:       vector.Token,
				timeoutMS:   vector.TimeoutMS,
			}
			// A message that is encoded as the body: to Empty all of it is unknown fields.
			body := new(emptypb.Empty)
			body.ProtoReflect().SetUnknown([]byte(vector.Body))
			encoded, err := appendRequest(nil, &head, body)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(encoded, vector.Hex) {
				t.Errorf("encoded as\n%x, wanted\n%x", encoded, []byte(vector.Hex))
			}
		})
	}
}

func TestVectorsOfResponses(t *testing.T) {
	for _, vector := range readVectors(t).Responses {
		t.Run(vector.Name, func(t *testing.T) {
			said, err := readResponse(vector.Hex)
			if !vector.OK {
				if err == nil {
					t.Errorf("accepted as %+v", said)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if said.code == codes.OK {
				said.message, said.reason = "", "" // a success reports neither
				if !bytes.Equal(said.body, vector.Body) {
					t.Errorf("body %x, wanted %x", said.body, []byte(vector.Body))
				}
			}
			if said.code != codes.Code(vector.Code) || said.message != vector.Message ||
				said.reason != Reason(vector.Reason) {
				t.Errorf("%+v, wanted %+v", said, vector)
			}
		})
	}
}

func TestVectorsOfEvents(t *testing.T) {
	for _, vector := range readVectors(t).Events {
		t.Run(vector.Name, func(t *testing.T) {
			message, err := readBusMessage(vector.Hex)
			if (err == nil) != vector.OK {
				t.Fatalf("accepted: %v; wanted: %v", err == nil, vector.OK)
			}
			if !vector.OK {
				return
			}
			var event tinev1.Event
			if err := proto.Unmarshal(message.event, &event); err != nil {
				t.Fatal(err)
			}
			if message.topic != vector.Topic || message.sequence != vector.Sequence ||
				message.kind != vector.Type || event.SessionId != vector.SessionID {
				t.Errorf("%+v, session %q; wanted %+v", message, event.SessionId, vector)
			}
			if event.Sequence != message.sequence || event.InstanceId != message.instanceID ||
				event.PreviousSessionSequence != message.previousOfSession {
				t.Errorf("%+v is not %v", message, &event)
			}
		})
	}
}

func TestALongRequestIsRefusedHere(t *testing.T) {
	head := requestHead{method: tinev1.StoreService_PutOriginal_FullMethodName}
	frame, err := appendRequest(nil, &head, &tinev1.PutOriginalRequest{})
	if err != nil {
		t.Fatal(err)
	}
	room := requestBytesMax - len(frame)
	room -= 2 * (1 + protowire.SizeVarint(requestBytesMax)) // of body and content, tag and length
	longest := &tinev1.PutOriginalRequest{Content: make([]byte, room)}
	if frame, err = appendRequest(nil, &head, longest); err != nil || len(frame) != requestBytesMax {
		t.Errorf("%d bytes: %v", len(frame), err)
	}
	longest.Content = make([]byte, room+1)
	if _, err = appendRequest(nil, &head, longest); err != errRequestTooLong {
		t.Errorf("a byte more: %v", err)
	}
}

func FuzzFrames(f *testing.F) {
	for _, vector := range readVectors(f).Frames {
		f.Add([]byte(vector.Hex), vector.Transport == "tcp", 5)
	}
	f.Fuzz(func(t *testing.T, stream []byte, isTCP bool, step int) {
		kind := transportIPC
		if isTCP {
			kind = transportTCP
		}
		payloads, then := cut(kind, stream, max(step%1000, 1))
		again, thenAgain := cut(kind, stream, len(stream)+1)
		if then != thenAgain || len(payloads) != len(again) {
			t.Fatalf("%d payloads, then %s; at once %d, then %s",
				len(payloads), then, len(again), thenAgain)
		}
		var whole []byte
		for i, payload := range payloads {
			if !bytes.Equal(payload, again[i]) {
				t.Fatalf("payload %d: %x and %x", i, payload, again[i])
			}
			header := make([]byte, kind.headerBytes())
			kind.putHeader(header, len(payload))
			whole = append(append(whole, header...), payload...)
		}
		if !bytes.HasPrefix(stream, whole) || then == "end" && len(whole) != len(stream) {
			t.Fatalf("%x was read as %x, then %s", stream, whole, then)
		}
	})
}

// isStrange reports whether a message contains what protobuf accepts but no encoder writes, and
// what the wire therefore refuses: a group, or a tag of more than five bytes. It looks into the
// fields of the message, and into those of the inner messages that are named.
func isStrange(message []byte, inner ...protowire.Number) bool {
	for len(message) > 0 {
		number, kind, tagBytes := protowire.ConsumeTag(message)
		size := protowire.ConsumeFieldValue(number, kind, message[max(tagBytes, 0):])
		if tagBytes < 0 || size < 0 {
			return true
		}
		if kind == protowire.StartGroupType || tagBytes > 5 {
			return true
		}
		value := message[tagBytes : tagBytes+size]
		if kind == protowire.BytesType && slices.Contains(inner, number) {
			content, _ := protowire.ConsumeBytes(value)
			if isStrange(content) {
				return true
			}
		}
		message = message[tagBytes+size:]
	}
	return false
}

func FuzzResponse(f *testing.F) {
	for _, vector := range readVectors(f).Responses {
		f.Add([]byte(vector.Hex))
	}
	f.Fuzz(func(t *testing.T, encoded []byte) {
		said, err := readResponse(encoded)
		var response tinev1.Response
		plain := proto.Unmarshal(encoded, &response)
		if len(encoded) == 0 || plain != nil || isStrange(encoded, fieldStatus) {
			if err == nil {
				t.Fatalf("%x is no Response: %v", encoded, plain)
			}
			return
		}
		if err != nil {
			t.Fatalf("%x is a Response", encoded)
		}
		status := response.GetStatus()
		if said.code != knownCode(uint64(status.GetCode())) ||
			said.message != status.GetMessage() || said.reason != Reason(status.GetReason()) ||
			!bytes.Equal(said.body, response.Body) {
			t.Fatalf("%x: %+v, wanted %v", encoded, said, &response)
		}
	})
}

// The bus message's parser does not look into the totals; decoding the event does.
func FuzzBusMessage(f *testing.F) {
	for _, vector := range readVectors(f).Events {
		f.Add([]byte(vector.Hex))
	}
	f.Fuzz(func(t *testing.T, encoded []byte) {
		message, err := readBusMessage(encoded)
		var event tinev1.Event
		topic, rest, found := bytes.Cut(encoded, []byte{0})
		plain := proto.Unmarshal(rest, &event)
		if err != nil {
			if found && utf8.Valid(topic) && plain == nil && !isStrange(rest) {
				t.Fatalf("%x is a message", encoded)
			}
			return
		}
		if isStrange(rest) {
			t.Fatalf("%x is no message", encoded)
		}
		if plain != nil {
			return
		}
		if event.Sequence != message.sequence || event.InstanceId != message.instanceID ||
			event.PreviousSessionSequence != message.previousOfSession ||
			event.Type != message.kind || string(topic) != message.topic {
			t.Fatalf("%x: %+v is not %v", encoded, message, &event)
		}
	})
}
