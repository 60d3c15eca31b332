package tine

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tine-store/tine/client/go/tinetest"
	"github.com/tine-store/tine/client/go/tinev1"
)

type eventStream = grpc.ServerStreamingClient[tinev1.WatchEventsResponse]

func watchEvents(t testing.TB, client *Client, request *tinev1.WatchEventsRequest) eventStream {
	t.Helper()
	stream, err := stub(client).WatchEvents(within(t), request)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func receive(t testing.TB, stream eventStream) *tinev1.Event {
	t.Helper()
	received, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return received.Event
}

// receiveMessages returns the ids of the next appended messages. It checks that no event is missing
// or comes twice, so the watch must be of all sessions.
func receiveMessages(t testing.TB, stream eventStream, count int) []string {
	t.Helper()
	var ids []string
	last := uint64(0)
	for len(ids) < count {
		event := receive(t, stream)
		if event.Sequence > 0 {
			if last > 0 && event.Sequence != last+1 {
				t.Fatalf("sequence %d came after %d", event.Sequence, last)
			}
			last = event.Sequence
		}
		if event.Type == "message.appended" {
			ids = append(ids, event.MessageId)
		}
	}
	return ids
}

// ways runs a test over each kind of connection that a watch can have.
func ways(t *testing.T, run func(t *testing.T, d *tinetest.Daemon, url string)) {
	const token = "0123456789abcdef0123456789abcdef"
	file := filepath.Join(scratch(t), "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freePort(t)
	d := startDaemon(t, "--listen", "tcp://"+address, "--token-file", file)
	waitForTCP(t, address, token)
	t.Run("bus", func(t *testing.T) { run(t, d, d.URL()) })
	t.Run("no-bus", func(t *testing.T) {
		link := filepath.Join(scratch(t), "link.sock") // beside it there are no events
		if err := os.Symlink(d.Socket(), link); err != nil {
			t.Fatal(err)
		}
		run(t, d, schemeIPC+link)
	})
	t.Run("tcp", func(t *testing.T) { run(t, d, "tcp://"+address) })
}

func dialWay(t *testing.T, url string) *Client {
	return dial(t, url, WithToken("0123456789abcdef0123456789abcdef"))
}

func TestAWatchTellsOfEachEventOnce(t *testing.T) {
	ways(t, func(t *testing.T, _ *tinetest.Daemon, url string) {
		client := dialWay(t, url)
		session := createSession(t, client)
		stream := watchEvents(t, client, &tinev1.WatchEventsRequest{SessionId: session})
		var want []string
		for i := range 20 {
			want = append(want, appendUser(t, client, session, fmt.Sprint(i)).Id)
			if got := receiveMessages(t, stream, 1); got[0] != want[i] {
				t.Fatalf("event %d is of %s, wanted %s", i, got[0], want[i])
			}
		}
		oldest := watchEvents(t, client, &tinev1.WatchEventsRequest{
			SessionId: session, Start: tinev1.WatchStart_WATCH_START_OLDEST,
		})
		if event := receive(t, oldest); event.Type != "session.created" {
			t.Errorf("%v", event)
		}
		for i := range want {
			if event := receive(t, oldest); event.MessageId != want[i] {
				t.Fatalf("event %d: %v", i, event)
			}
		}
	})
}

func TestAWatchBeginsWhereItIsTold(t *testing.T) {
	ways(t, func(t *testing.T, _ *tinetest.Daemon, url string) {
		client := dialWay(t, url)
		session, other := createSession(t, client), createSession(t, client)
		all := watchEvents(t, client, &tinev1.WatchEventsRequest{})
		first := appendUser(t, client, session, "first")
		position := receive(t, all)
		if position.MessageId != first.Id {
			t.Fatalf("%v", position)
		}
		appendUser(t, client, other, "of another session")
		second := appendUser(t, client, session, "second")
		for _, request := range []*tinev1.WatchEventsRequest{
			{SessionId: session}, {SessionId: session, TypePrefix: "message."}, {TypePrefix: "message.app"},
		} {
			request.Start = tinev1.WatchStart_WATCH_START_AFTER
			request.AfterSequence = position.Sequence
			request.InstanceId = position.InstanceId
			stream := watchEvents(t, client, request)
			if request.SessionId == "" {
				if event := receive(t, stream); event.SessionId != other {
					t.Errorf("%v", event)
				}
			}
			if event := receive(t, stream); event.MessageId != second.Id {
				t.Errorf("%v", event)
			}
		}
	})
}

func TestHowAWatchIsRefused(t *testing.T) {
	d := startDaemon(t)
	client := dial(t, d.URL())
	for _, row := range []struct {
		request *tinev1.WatchEventsRequest
		code    codes.Code
		reason  Reason
	}{
		{&tinev1.WatchEventsRequest{SessionId: noSession}, codes.NotFound, "SESSION_NOT_FOUND"},
		{&tinev1.WatchEventsRequest{SessionId: "short"}, codes.InvalidArgument, "INVALID_ARGUMENT"},
		{&tinev1.WatchEventsRequest{
			Start: tinev1.WatchStart_WATCH_START_AFTER, InstanceId: noSession,
		}, codes.OutOfRange, "STORE_CHANGED"},
		{&tinev1.WatchEventsRequest{
			Start: tinev1.WatchStart_WATCH_START_AFTER, AfterSequence: 1 << 40,
		}, codes.OutOfRange, "STORE_CHANGED"},
	} {
		_, err := stub(client).WatchEvents(within(t), row.request)
		wantStatus(t, err, row.code, row.reason)
	}
	nobody := dial(t, schemeIPC+scratch(t)+"/nobody.sock")
	_, err := stub(nobody).WatchEvents(within(t), &tinev1.WatchEventsRequest{})
	wantStatus(t, err, codes.Unavailable, "UNAVAILABLE")
	_, err = client.NewStream(within(t), nil, tinev1.StoreService_Health_FullMethodName)
	wantStatus(t, err, codes.Unimplemented, "UNIMPLEMENTED")
}

func TestAWatchEndsWithItsSession(t *testing.T) {
	ways(t, func(t *testing.T, _ *tinetest.Daemon, url string) {
		client := dialWay(t, url)
		session := createSession(t, client)
		stream := watchEvents(t, client, &tinev1.WatchEventsRequest{SessionId: session})
		if _, err := stub(client).PurgeSession(within(t),
			&tinev1.PurgeSessionRequest{SessionId: session}); err != nil {
			t.Fatal(err)
		}
		for {
			_, err := stream.Recv()
			if err != nil {
				wantStatus(t, err, codes.NotFound, "SESSION_NOT_FOUND")
				if got := stream.Trailer().Get("tine-reason"); len(got) != 1 {
					t.Errorf("trailer %v", stream.Trailer())
				}
				_, again := stream.Recv()
				wantStatus(t, again, codes.NotFound, "SESSION_NOT_FOUND")
				return
			}
		}
	})
}

func TestBroadcastsComeBetweenTheWrites(t *testing.T) {
	d := startDaemon(t)
	client := dial(t, d.URL())
	session := createSession(t, client)
	stream := watchEvents(t, client, &tinev1.WatchEventsRequest{SessionId: session})
	appendUser(t, client, session, "before")
	if event := receive(t, stream); event.Type != "message.appended" {
		t.Fatalf("%v", event)
	}
	for i := range 10 {
		if _, err := stub(client).BroadcastEvent(within(t), &tinev1.BroadcastEventRequest{
			SessionId: session, Type: "text.delta", DataJson: fmt.Sprint(i),
		}); err != nil {
			t.Fatal(err)
		}
		appendUser(t, client, session, "after")
		if event := receive(t, stream); event.Type != "text.delta" || event.DataJson != fmt.Sprint(i) ||
			event.Sequence != 0 {
			t.Fatalf("%v", event)
		}
		if event := receive(t, stream); event.Type != "message.appended" {
			t.Fatalf("%v", event)
		}
	}
}

// A broadcast is not stored. A reader that pauses for long must still find it on the bus.
func TestAPauseBetweenTwoEventsLosesNoBroadcast(t *testing.T) {
	d := startDaemon(t)
	client := dial(t, d.URL())
	session := createSession(t, client)
	stream := watchEvents(t, client, &tinev1.WatchEventsRequest{SessionId: session})
	appendUser(t, client, session, "so that the bus is known to be live")
	receiveMessages(t, stream, 1)
	if _, err := stub(client).BroadcastEvent(within(t), &tinev1.BroadcastEventRequest{
		SessionId: session, Type: "text.delta", DataJson: "1",
	}); err != nil {
		t.Fatal(err)
	}
	appendUser(t, client, session, "behind it")
	w := stream.(*grpc.GenericClientStream[
		tinev1.WatchEventsRequest, tinev1.WatchEventsResponse]).ClientStream.(*watch)
	w.heard = time.Now().Add(-time.Hour)
	if event := receive(t, stream); event.Type != "text.delta" {
		t.Errorf("%v", event)
	}
	if event := receive(t, stream); event.Type != "message.appended" {
		t.Errorf("%v", event)
	}
}

// The bus drops events for a slow reader. The watch lists them.
func TestAReaderThatIsLateMissesNothing(t *testing.T) {
	d := startDaemon(t, "--ephemeral")
	client := dial(t, d.URL())
	stream := watchEvents(t, client, &tinev1.WatchEventsRequest{})
	const writers, each = 32, 500
	data := strings.Repeat("x", 2000)
	failures := make(chan error)
	for range writers {
		go func() {
			for range each {
				_, err := stub(client).PublishEvent(context.Background(),
					&tinev1.PublishEventRequest{Type: "burst", DataJson: `"` + data + `"`})
				if err != nil {
					failures <- err
					return
				}
			}
			failures <- nil
		}()
	}
	for range writers {
		if err := <-failures; err != nil {
			t.Fatal(err)
		}
	}
	for i := range writers * each {
		if event := receive(t, stream); event.Sequence != uint64(i+1) {
			t.Fatalf("event %d has sequence %d", i, event.Sequence)
		}
	}
}

func TestHowAWatchIsEnded(t *testing.T) {
	ways(t, func(t *testing.T, _ *tinetest.Daemon, url string) {
		checkLeaks(t, func() {
			client := dialWay(t, url)
			begin := func(ctx context.Context) (eventStream, chan error) {
				stream, err := stub(client).WatchEvents(ctx, &tinev1.WatchEventsRequest{})
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() {
					_, err := stream.Recv()
					ended <- err
				}()
				return stream, ended
			}
			ctx, cancel := context.WithCancel(context.Background())
			_, ended := begin(ctx)
			cancel()
			wantStatus(t, <-ended, codes.Canceled, "CANCELLED")

			ctx, cancel = context.WithTimeout(context.Background(), 200*time.Millisecond)
			_, ended = begin(ctx)
			wantStatus(t, <-ended, codes.DeadlineExceeded, "DEADLINE_EXCEEDED")
			cancel()

			_, ended = begin(context.Background())
			client.Close()
			err := <-ended
			wantStatus(t, err, codes.Canceled, "CANCELLED")
			if !strings.Contains(err.Error(), "the client is closed") {
				t.Errorf("%v", err)
			}
			_, err = stub(client).WatchEvents(context.Background(), &tinev1.WatchEventsRequest{})
			wantStatus(t, err, codes.Canceled, "CANCELLED")
		})
	})
}

func TestAClientIsClosedWhileAWatchBegins(t *testing.T) {
	checkLeaks(t, func() {
		nobody := schemeIPC + filepath.Join(scratch(t), "nobody.sock")
		for range 300 {
			client, err := Dial(nobody)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error)
			go func() {
				for {
					_, err := stub(client).WatchEvents(within(t), &tinev1.WatchEventsRequest{})
					if status.Code(err) != codes.Unavailable {
						ended <- err
						return
					}
					runtime.Gosched()
				}
			}()
			eventually(t, "a watch", func() bool {
				client.mutex.Lock()
				defer client.mutex.Unlock()
				return len(client.streams) > 0
			})
			client.Close()
			wantStatus(t, <-ended, codes.Canceled, "CANCELLED")
		}
	})
}

// A cancelled stream releases its resources although nobody reads from it.
func TestAWatchThatIsLeftGivesBackWhatItHas(t *testing.T) {
	d := startDaemon(t)
	checkLeaks(t, func() {
		client := dial(t, d.URL())
		for range 20 {
			ctx, cancel := context.WithCancel(context.Background())
			if _, err := stub(client).WatchEvents(ctx, &tinev1.WatchEventsRequest{}); err != nil {
				t.Error(err)
			}
			cancel()
		}
		eventually(t, "the streams' end", func() bool {
			client.mutex.Lock()
			defer client.mutex.Unlock()
			return len(client.streams) == 0
		})
		client.Close()
	})
}

// fakeBus makes a bus beside a link to a daemon's socket. It calls say for each subscriber.
func fakeBus(t *testing.T, d *tinetest.Daemon, say func(net.Conn)) (url string) {
	t.Helper()
	link := filepath.Join(scratch(t), "link.sock")
	if err := os.Symlink(d.Socket(), link); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", strings.TrimSuffix(link, ".sock")+".events")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { connection.Close() })
			go say(connection)
		}
	}()
	return schemeIPC + link
}

// busFrame returns a message of the bus as a frame.
func busFrame(t *testing.T, topic string, event *tinev1.Event) []byte {
	encoded, err := proto.Marshal(event)
	if err != nil {
		t.Error(err)
	}
	payload := append([]byte(topic+"\x00"), encoded...)
	header := make([]byte, transportIPC.headerBytes())
	transportIPC.putHeader(header, len(payload))
	return append(header, payload...)
}

func TestABusThatIsNoneIsDoneWithout(t *testing.T) {
	d := startDaemon(t)
	said := hello(protocolPub)
	for name, say := range map[string]func(net.Conn){
		"hangs up":        func(c net.Conn) { c.Close() },
		"says no hello":   func(net.Conn) {},
		"is another":      func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 400 Bad Request")) },
		"is silent":       func(c net.Conn) { _, _ = c.Write(said[:]) },
		"sends noise":     func(c net.Conn) { _, _ = c.Write(append(said[:], "noise noise noise"...)) },
		"is cut off":      func(c net.Conn) { _, _ = c.Write(append(said[:], 1, 0, 0)); c.Close() },
		"has a bad event": func(c net.Conn) { _, _ = c.Write(append(said[:], 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 7)) },
		"is another store's": func(c net.Conn) {
			_, _ = c.Write(append(said[:], busFrame(t, topicHeartbeat,
				&tinev1.Event{Sequence: 1 << 40, InstanceId: noSession})...))
		},
		"falls silent": func(c net.Conn) {
			_, _ = c.Write(append(said[:], busFrame(t, "global/x",
				&tinev1.Event{InstanceId: noSession})...))
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := dial(t, fakeBus(t, d, say), func(o *options) {
				o.busSilence = 100 * time.Millisecond
			})
			session := createSession(t, client)
			stream := watchEvents(t, client, &tinev1.WatchEventsRequest{SessionId: session})
			for i := range 3 {
				want := appendUser(t, client, session, fmt.Sprint(i)).Id
				if got := receiveMessages(t, stream, 1); got[0] != want {
					t.Fatalf("%s, wanted %s", got[0], want)
				}
			}
		})
	}
}

// A watch lists the events that the bus loses, whatever the bus sends next.
func TestWhatTheBusLosesIsListed(t *testing.T) {
	d := startDaemon(t)
	// Sends on every third message of the real bus.
	url := fakeBus(t, d, func(c net.Conn) {
		said := hello(protocolPub)
		_, _ = c.Write(said[:])
		b, err := subscribe(context.Background(), address{target: d.Socket()}.events())
		if err != nil {
			t.Error(err)
			return
		}
		defer b.close()
		for i := 0; ; i++ {
			message, err := b.next(time.Now().Add(limit))
			if err != nil || message == nil {
				return
			}
			if i%3 != 0 {
				continue
			}
			header := make([]byte, transportIPC.headerBytes())
			transportIPC.putHeader(header, len(message))
			if _, err := c.Write(append(header, message...)); err != nil {
				return
			}
		}
	})
	client := dial(t, url)
	session, other := createSession(t, client), createSession(t, client)
	for _, watched := range []string{"", session} {
		stream := watchEvents(t, client, &tinev1.WatchEventsRequest{SessionId: watched})
		want := map[string]bool{}
		for i := range 60 {
			want[appendUser(t, client, session, fmt.Sprint(i)).Id] = true
			id := appendUser(t, client, other, fmt.Sprint(i)).Id
			if watched == "" {
				want[id] = true
			}
		}
		for len(want) > 0 {
			event := receive(t, stream)
			if !want[event.MessageId] {
				t.Fatalf("not wanted, or twice: %v", event)
			}
			delete(want, event.MessageId)
		}
	}
}
