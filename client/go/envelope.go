package tine

// Encoding and decoding of the envelope (proto/tine/v1/rpc.proto). It is written by hand so that a
// body is encoded into its frame, and decoded from it, without a copy.

import (
	"errors"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

const (
	fieldMethod      protowire.Number = 1
	fieldOperationID protowire.Number = 2
	fieldTimeoutMS   protowire.Number = 3
	fieldTraceparent protowire.Number = 4
	fieldToken       protowire.Number = 5
	fieldSync        protowire.Number = 6
	fieldBody        protowire.Number = 15

	fieldStatus        protowire.Number = 1
	fieldStatusCode    protowire.Number = 1
	fieldStatusMessage protowire.Number = 2
	fieldStatusReason  protowire.Number = 3

	tagBytesMax = 5
)

var (
	errRequestTooLong = errors.New("the request is longer than 16 MiB; send it in several")
	errNoResponse     = errors.New("the reply cannot be decoded")
)

// requestHead is a Request without its body.
type requestHead struct {
	method, operationID, traceparent, token string
	timeoutMS                               int64 // 0: none
	sync                                    bool  // the reply waits until the write is on disk
}

func appendText(out []byte, number protowire.Number, text string) []byte {
	if text == "" {
		return out
	}
	out = protowire.AppendTag(out, number, protowire.BytesType)
	return protowire.AppendString(out, text)
}

// appendRequest appends an encoded Request with the body as its last field.
func appendRequest(out []byte, head *requestHead, body proto.Message) ([]byte, error) {
	begin := len(out)
	out = appendText(out, fieldMethod, head.method)
	out = appendText(out, fieldOperationID, head.operationID)
	if head.timeoutMS != 0 {
		out = protowire.AppendTag(out, fieldTimeoutMS, protowire.VarintType)
		out = protowire.AppendVarint(out, uint64(head.timeoutMS))
	}
	out = appendText(out, fieldTraceparent, head.traceparent)
	out = appendText(out, fieldToken, head.token)
	if head.sync {
		out = protowire.AppendTag(out, fieldSync, protowire.VarintType)
		out = protowire.AppendVarint(out, 1)
	}
	size := proto.Size(body)
	if size > requestBytesMax {
		return nil, errRequestTooLong
	}
	if size > 0 {
		out = protowire.AppendTag(out, fieldBody, protowire.BytesType)
		out = protowire.AppendVarint(out, uint64(size))
	}
	if len(out)-begin+size > requestBytesMax {
		return nil, errRequestTooLong
	}
	return proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(out, body)
}

// response is a decoded Response. Its body points into the bytes that were decoded.
type response struct {
	code    codes.Code
	reason  Reason
	message string
	body    []byte
}

// readResponse decodes a Response. A status that occurs twice is merged as protobuf requires: the
// last value of each field holds.
func readResponse(bytes []byte) (response, error) {
	var out response
	if len(bytes) == 0 {
		return out, errNoResponse // it has neither a status nor a body
	}
	for len(bytes) > 0 {
		number, kind, value, size := consumeField(bytes)
		if size < 0 {
			return out, errNoResponse
		}
		bytes = bytes[size:]
		switch {
		case kind != protowire.BytesType: // an unknown field, whatever its number
		case number == fieldBody:
			out.body = value
		case number == fieldStatus:
			if err := out.readStatus(value); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// readStatus merges a status into the response. It checks each text, also one that a later text
// replaces.
func (out *response) readStatus(bytes []byte) error {
	for len(bytes) > 0 {
		number, kind, value, size := consumeField(bytes)
		if size < 0 {
			return errNoResponse
		}
		bytes = bytes[size:]
		switch {
		case number == fieldStatusCode && kind == protowire.VarintType:
			code, _ := protowire.ConsumeVarint(value)
			out.code = knownCode(code)
		case kind != protowire.BytesType || number != fieldStatusMessage && number != fieldStatusReason:
		case !utf8.Valid(value):
			return errNoResponse
		case number == fieldStatusMessage:
			out.message = string(value)
		default:
			out.reason = Reason(value)
		}
	}
	return nil
}

// consumeField splits off the first field. value is the encoded value, or the content of a field of
// bytes; size is negative if the field is malformed. It is as strict as the server's reader about
// what no encoder writes: it refuses a tag of more than five bytes, and groups.
func consumeField(bytes []byte) (number protowire.Number, kind protowire.Type, value []byte, size int) {
	number, kind, tagBytes := protowire.ConsumeTag(bytes)
	if tagBytes < 0 || tagBytes > tagBytesMax || number > protowire.MaxValidNumber ||
		kind == protowire.StartGroupType {
		return 0, 0, nil, -1
	}
	bytes = bytes[tagBytes:]
	if kind == protowire.BytesType {
		value, size = protowire.ConsumeBytes(bytes)
	} else if size = protowire.ConsumeFieldValue(number, kind, bytes); size >= 0 {
		value = bytes[:size]
	}
	if size < 0 {
		return 0, 0, nil, -1
	}
	return number, kind, value, tagBytes + size
}

// knownCode converts a code. A code that gRPC does not have becomes Unknown.
func knownCode(code uint64) codes.Code {
	if int32(code) < 0 || int32(code) > int32(codes.Unauthenticated) {
		return codes.Unknown
	}
	return codes.Code(uint32(code))
}
