package tine

import (
	"context"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tine-store/tine/client/go/tinev1"
)

// Each call to a hostile server fails by its deadline and leaves nothing behind.
func TestHostileServers(t *testing.T) {
	for _, mode := range []string{
		"garbage", "bad-hello", "half-hello", "silent", "hello-then-silent", "hang-up",
		"hang-up-after-hello", "hang-up-on-request", "half-frame", "half-frame-close", "length-bomb",
		"length-huge", "length-over", "wrong-id", "no-id", "garbage-reply", "flood",
	} {
		t.Run(mode, func(t *testing.T) {
			url := startPeer(t, mode)
			checkLeaks(t, func() {
				client := dial(t, url)
				failures := make(chan error)
				const callers = 8
				for range callers {
					go func() {
						var err error
						for range 3 {
							ctx, cancel := context.WithTimeout(context.Background(),
								150*time.Millisecond)
							err = health(ctx, client)
							cancel()
						}
						failures <- err
					}()
				}
				for range callers {
					err := <-failures
					switch status.Code(err) {
					case codes.Unavailable, codes.DeadlineExceeded, codes.Internal:
					default:
						t.Errorf("%v", err)
					}
					if ReasonOf(err) == "" {
						t.Errorf("%v has no reason", err)
					}
				}
				if err := client.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestAWatchOfAHostileServerEnds(t *testing.T) {
	for _, mode := range []string{"garbage", "silent", "hello-then-silent", "garbage-reply", "flood"} {
		t.Run(mode, func(t *testing.T) {
			url := startPeer(t, mode)
			checkLeaks(t, func() {
				client := dial(t, url, WithRetry(limit))
				ctx, cancel := context.WithTimeout(context.Background(), 150*time.Millisecond)
				defer cancel()
				stream, err := stub(client).WatchEvents(ctx, &tinev1.WatchEventsRequest{})
				if err == nil {
					_, err = stream.Recv()
				}
				if code := status.Code(err); code != codes.DeadlineExceeded && code != codes.Internal {
					t.Errorf("%v", err)
				}
				client.Close()
			})
		})
	}
}

func TestRepliesThatComeTwiceAreTakenOnce(t *testing.T) {
	client := dial(t, startPeer(t, "twice"))
	for range 300 {
		if err := health(within(t), client); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheConnectionToAHostileServerIsNamed(t *testing.T) {
	for mode, words := range map[string]string{
		"garbage":            "REP socket",
		"bad-hello":          "REP socket",
		"hang-up":            "hung up",
		"hang-up-on-request": "hung up",
		"length-bomb":        "too long",
		"no-id":              "without an id",
		"garbage-reply":      "cannot be decoded",
	} {
		err := health(within(t), dial(t, startPeer(t, mode)))
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v; wanted %q", mode, err, words)
		}
	}
}

func TestStatusesOfThePeerAreToldAsTheyAre(t *testing.T) {
	client := dial(t, startPeer(t, "status"))
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		said := "code:" + strconv.Itoa(int(code)) + ":SOME_REASON:some message: with % and \n"
		_, err := stub(client).GetSession(within(t), &tinev1.GetSessionRequest{SessionId: said})
		wantStatus(t, err, code, "SOME_REASON")
		if message := status.Convert(err).Message(); message != "some message: with % and \n" {
			t.Errorf("%q", message)
		}
	}
	if err := health(within(t), client); err != nil {
		t.Error(err)
	}
}

// Requests that the socket does not take wait in the client and do not block their callers.
func TestAServerThatDoesNotRead(t *testing.T) {
	listener, err := net.Listen("unix", filepath.Join(scratch(t), "s.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		said := hello(protocolRep)
		_, _ = connection.Write(said[:])
		accepted <- connection
	}()
	checkLeaks(t, func() {
		client := dial(t, schemeIPC+listener.Addr().String())
		long := strings.Repeat("x", 4<<20)
		for range 3 {
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			_, err := stub(client).AppendMessage(ctx, userMessage("s", long))
			wantStatus(t, err, codes.DeadlineExceeded, "DEADLINE_EXCEEDED")
			cancel()
		}
		client.Close()
		(<-accepted).Close()
	})
}
