package tine

import (
	"fmt"
	"slices"
	"testing"
)

func TestALongFrameIsAllocatedInTwoSteps(t *testing.T) {
	const payloadBytes = 5<<20 + 1
	stream := make([]byte, transportIPC.headerBytes()+payloadBytes)
	transportIPC.putHeader(stream, payloadBytes)
	in := inbox{transport: transportIPC}
	var sizes []int
	for fed := 0; fed < len(stream); {
		count := copy(in.space(), stream[fed:])
		in.took(count)
		fed += count
		if size := cap(in.large); size > 0 && !slices.Contains(sizes, size) {
			sizes = append(sizes, size)
		}
		if fed == len(stream) {
			break
		}
		if _, _, err := in.next(); err != nil {
			t.Fatal(err)
		}
	}
	if want := []int{largeBytesAtOnce, payloadBytes}; !slices.Equal(sizes, want) {
		t.Errorf("%v bytes were allocated, wanted %v", sizes, want)
	}
}

// BenchmarkLongFrame receives frames that do not fit into the inbox's buffer, 64 KiB at a time.
func BenchmarkLongFrame(b *testing.B) {
	const readBytes = 64 << 10
	for _, mebibytes := range []int{1, 2, 16} {
		b.Run(fmt.Sprintf("%dMiB", mebibytes), func(b *testing.B) {
			stream := make([]byte, transportIPC.headerBytes()+mebibytes<<20)
			transportIPC.putHeader(stream, mebibytes<<20)
			b.SetBytes(int64(len(stream)))
			b.ReportAllocs()
			for b.Loop() {
				in := inbox{transport: transportIPC}
				for fed := 0; fed < len(stream); {
					space := in.space()
					count := copy(space[:min(readBytes, len(space))], stream[fed:])
					in.took(count)
					fed += count
					payload, _, err := in.next()
					if err != nil || (payload != nil) != (fed == len(stream)) {
						b.Fatalf("%d bytes after %d: %v", len(payload), fed, err)
					}
				}
			}
		})
	}
}
