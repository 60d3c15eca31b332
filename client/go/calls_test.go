package tine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/tine-store/tine/client/go/tinev1"
)

const noSession = "01ARZ3NDEKTSV4RRFFQ69G5FAV"

func TestCallsOfARealServer(t *testing.T) {
	d := startDaemon(t)
	client := dial(t, d.URL())
	session := createSession(t, client)
	appendUser(t, client, session, "Where do we begin?")
	appendUser(t, client, session, "With the store.")
	if got := history(t, client, session); len(got) != 2 || got[1] != "With the store." {
		t.Errorf("%q", got)
	}
	if reply, err := stub(client).GetSession(within(t),
		&tinev1.GetSessionRequest{SessionId: session}); err != nil || reply.Session.EntryCount != 2 {
		t.Errorf("%v: %v", reply, err)
	}
}

func TestAnErrorIsAStatusWithAReason(t *testing.T) {
	d := startDaemon(t)
	client := dial(t, d.URL())
	_, err := stub(client).GetSession(within(t), &tinev1.GetSessionRequest{SessionId: noSession})
	wantStatus(t, err, codes.NotFound, "SESSION_NOT_FOUND")
	if said, ok := status.FromError(err); !ok || said.Message() == "" {
		t.Errorf("%v is no status with a message", err)
	}
	wrapped := fmt.Errorf("reading the plan: %w", err)
	if ReasonOf(wrapped) != "SESSION_NOT_FOUND" || status.Code(wrapped) != codes.NotFound {
		t.Errorf("%v lost its reason or its code", wrapped)
	}
	want := status.Error(codes.NotFound, status.Convert(err).Message()).Error() + " (SESSION_NOT_FOUND)"
	if err.Error() != want {
		t.Errorf("%q, wanted %q", err, want)
	}
	if ReasonOf(nil) != "" || ReasonOf(errors.New("other")) != "" {
		t.Error("an error of others has a reason")
	}
}

// allMethods calls every method of the service, except the stream, with an empty request.
func allMethods(t *testing.T, client *Client, call func(method protoreflect.MethodDescriptor, invoke func(context.Context) error)) {
	t.Helper()
	all := tinev1.File_tine_v1_store_proto.Services().Get(0).Methods()
	for i := range all.Len() {
		method := all.Get(i)
		if method.IsStreamingServer() {
			continue
		}
		call(method, func(ctx context.Context) error {
			request, err := protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName())
			if err != nil {
				t.Fatal(err)
			}
			reply, err := protoregistry.GlobalTypes.FindMessageByName(method.Output().FullName())
			if err != nil {
				t.Fatal(err)
			}
			return client.Invoke(ctx, "/tine.v1.StoreService/"+string(method.Name()),
				request.New().Interface(), reply.New().Interface())
		})
	}
}

func TestEachWriteCarriesAnOperationIDOfItsOwn(t *testing.T) {
	s := serve(t, (*serverCall).ok)
	client := dial(t, s.url())
	seen := map[string]bool{}
	reads := 0
	allMethods(t, client, func(method protoreflect.MethodDescriptor, invoke func(context.Context) error) {
		_, before := s.count()
		if err := invoke(within(t)); err != nil {
			t.Fatal(err)
		}
		id := s.request(before).OperationId
		if isRead(method) {
			reads++
			if id != "" {
				t.Errorf("the read %s carries %q", method.Name(), id)
			}
			return
		}
		if len(id) < 26 || len(id) > 64 || seen[id] {
			t.Errorf("%s carries %q", method.Name(), id)
		}
		seen[id] = true
	})
	if reads == 0 || len(seen) == 0 {
		t.Errorf("%d reads, %d writes", reads, len(seen))
	}
}

func TestMetadataFillsTheEnvelope(t *testing.T) {
	s := serve(t, (*serverCall).ok)
	client := dial(t, s.url(), WithToken("the client's token"))
	ctx := metadata.AppendToOutgoingContext(within(t), "tine-operation-id", "op-1",
		"traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	if _, err := stub(client).AppendMessage(ctx, userMessage("s", "x")); err != nil {
		t.Fatal(err)
	}
	request := s.request(0)
	if request.OperationId != "op-1" || !strings.HasPrefix(request.Traceparent, "00-4bf9") ||
		request.Token != "the client's token" || request.TimeoutMs <= 0 ||
		request.TimeoutMs > limit.Milliseconds() {
		t.Errorf("%v", request)
	}
	if request.Sync {
		t.Error("nobody asked for an answer that is on the disk")
	}
	ctx = metadata.AppendToOutgoingContext(WithOperationID(context.Background(), ""),
		"tine-token", "another token", "tine-sync", "1")
	if _, err := stub(client).AppendMessage(ctx, userMessage("s", "x")); err != nil {
		t.Fatal(err)
	}
	if request = s.request(1); request.OperationId != "" || request.Token != "another token" ||
		request.TimeoutMs != 0 || !request.Sync {
		t.Errorf("%v", request)
	}
	if err := health(WithOperationID(context.Background(), "op-2"), client); err != nil {
		t.Fatal(err)
	}
	if request = s.request(2); request.OperationId != "" {
		t.Errorf("a read carries %q", request.OperationId)
	}
}

func TestADeadlineEndsACall(t *testing.T) {
	s := serve(t, func(*serverCall) {})
	client := dial(t, s.url())
	for _, timeout := range []time.Duration{time.Millisecond, 50 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		wantStatus(t, health(ctx, client), codes.DeadlineExceeded, "DEADLINE_EXCEEDED")
		cancel()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	_, before := s.count()
	wantStatus(t, health(ctx, client), codes.DeadlineExceeded, "DEADLINE_EXCEEDED")
	if _, after := s.count(); after != before {
		t.Error("a call whose time was up was sent")
	}
}

func TestACancelledCallLeavesItsReplyBehind(t *testing.T) {
	replies := make(chan struct{})
	s := serve(t, func(c *serverCall) {
		if c.number == 0 {
			<-replies
		}
		c.ok()
	})
	client := dial(t, s.url())
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan error)
	go func() { failed <- health(ctx, client) }()
	eventually(t, "the request", func() bool { _, requests := s.count(); return requests == 1 })
	cancel()
	wantStatus(t, <-failed, codes.Canceled, "CANCELLED")
	close(replies)
	for range 200 {
		if err := health(within(t), client); err != nil {
			t.Fatal(err)
		}
	}
	if connections, _ := s.count(); connections != 1 {
		t.Errorf("%d connections", connections)
	}
}

func TestThe65thCallWaitsForItsTurn(t *testing.T) {
	replies := make(chan struct{})
	var inFlight, most atomic.Int32
	s := serve(t, func(c *serverCall) {
		if now := inFlight.Add(1); now > most.Load() {
			most.Store(now)
		}
		<-replies
		inFlight.Add(-1)
		c.ok()
	})
	client := dial(t, s.url())
	var group sync.WaitGroup
	failures := make(chan error, 3*inFlightMax)
	for range inFlightMax {
		group.Add(1)
		go func() { defer group.Done(); failures <- health(within(t), client) }()
	}
	eventually(t, "64 in flight", func() bool { return inFlight.Load() == inFlightMax })
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	err := health(ctx, client)
	wantStatus(t, err, codes.DeadlineExceeded, "DEADLINE_EXCEEDED")
	if !strings.Contains(err.Error(), "nothing was done") {
		t.Errorf("%v", err)
	}
	for range 2 * inFlightMax {
		group.Add(1)
		go func() { defer group.Done(); failures <- health(within(t), client) }()
	}
	close(replies)
	group.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			t.Error(err)
		}
	}
	connections, requests := s.count()
	if most.Load() != inFlightMax || requests != 3*inFlightMax || connections != 1 {
		t.Errorf("%d in flight, %d requests, %d connections", most.Load(), requests, connections)
	}
}

// The client closes the connection to a server that answers none of 64 calls before they are
// abandoned. Otherwise it could never make another call.
func TestAConnectionFullOfAbandonedCallsIsGivenUp(t *testing.T) {
	s := serve(t, func(c *serverCall) {
		if c.number >= inFlightMax {
			c.ok()
		}
	})
	client := dial(t, s.url(), WithRetry(limit))
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for range inFlightMax {
		group.Add(1)
		go func() { defer group.Done(); _ = health(ctx, client) }()
	}
	eventually(t, "64 requests", func() bool { _, requests := s.count(); return requests == inFlightMax })
	// One call that waits already, and one that comes later.
	waiting := make(chan error)
	go func() { waiting <- health(within(t), client) }()
	cancel()
	group.Wait()
	if err := <-waiting; err != nil {
		t.Error(err)
	}
	if err := health(within(t), client); err != nil {
		t.Error(err)
	}
	if connections, _ := s.count(); connections != 2 {
		t.Errorf("%d connections", connections)
	}
}

// Calls that wait for a slot have not been sent, so they are made over a new connection.
func TestCallsThatWaitWhenTheirConnectionIsGivenUpAreMade(t *testing.T) {
	for range 20 {
		s := serve(t, func(c *serverCall) {
			if c.number == 0 || c.number > inFlightMax {
				c.ok()
			}
		})
		client := dial(t, s.url())
		if err := health(within(t), client); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var group sync.WaitGroup
		for range inFlightMax {
			group.Add(1)
			go func() { defer group.Done(); _ = health(ctx, client) }()
		}
		eventually(t, "64 requests", func() bool { _, requests := s.count(); return requests == 1+inFlightMax })
		const waiters = 20
		waiting := make(chan error, waiters)
		for range waiters {
			go func() { waiting <- health(within(t), client) }()
		}
		c := client.link.current.Load()
		eventually(t, "the others wait", func() bool {
			c.mutex.Lock()
			defer c.mutex.Unlock()
			return len(c.waiting) == waiters
		})
		cancel()
		for range waiters {
			if err := <-waiting; err != nil {
				t.Fatal(err)
			}
		}
		group.Wait()
		client.Close()
	}
}

func TestWaitForReadyWaits(t *testing.T) {
	d := startDaemon(t)
	d.Kill()
	client := dial(t, d.URL())
	wantStatus(t, health(within(t), client), codes.Unavailable, "UNAVAILABLE")
	ended := make(chan error)
	go func() {
		ended <- client.Invoke(within(t), tinev1.StoreService_Health_FullMethodName,
			&tinev1.HealthRequest{}, &tinev1.HealthResponse{}, grpc.WaitForReady(true))
	}()
	d.Start()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestCloseEndsWhatIsInFlight(t *testing.T) {
	checkLeaks(t, func() {
		s := serve(t, func(*serverCall) {})
		client := dial(t, s.url())
		failed := make(chan error)
		for range 10 {
			go func() { failed <- health(context.Background(), client) }()
		}
		eventually(t, "the requests", func() bool { _, requests := s.count(); return requests == 10 })
		client.Close()
		for range 10 {
			err := <-failed
			wantStatus(t, err, codes.Canceled, "CANCELLED")
			if !strings.Contains(err.Error(), "the client is closed") {
				t.Errorf("%v", err)
			}
		}
		wantStatus(t, health(context.Background(), client), codes.Canceled, "CANCELLED")
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		s.close()
	})
}

func TestCallOptions(t *testing.T) {
	d := startDaemon(t)
	client := dial(t, d.URL())
	var header, trailer metadata.MD
	_, err := stub(client).GetSession(within(t), &tinev1.GetSessionRequest{SessionId: noSession},
		grpc.Header(&header), grpc.Trailer(&trailer))
	wantStatus(t, err, codes.NotFound, "SESSION_NOT_FOUND")
	if got := trailer.Get("tine-reason"); len(got) != 1 || got[0] != "SESSION_NOT_FOUND" {
		t.Errorf("trailer %v", trailer)
	}
	_, err = stub(client).Health(within(t), &tinev1.HealthRequest{}, grpc.UseCompressor("gzip"))
	wantStatus(t, err, codes.Unimplemented, "UNIMPLEMENTED")
	err = client.Invoke(within(t), "/tine.v1.StoreService/Health", "no message", nil)
	wantStatus(t, err, codes.Internal, "INTERNAL")
	err = client.Invoke(within(t), "/tine.v1.StoreService/Unheard", &tinev1.HealthRequest{},
		&tinev1.HealthResponse{})
	wantStatus(t, err, codes.Unimplemented, "UNIMPLEMENTED")
}

func TestLargeMessagesThereAndBack(t *testing.T) {
	d := startDaemon(t)
	client := dial(t, d.URL())
	session := createSession(t, client)
	long := strings.Repeat("0123456789abcdef", 15<<20/16)
	receipt := appendUser(t, client, session, long)
	reply, err := stub(client).GetMessage(within(t), &tinev1.GetMessageRequest{
		By: &tinev1.GetMessageRequest_MessageId{MessageId: receipt.Id},
	})
	if err != nil || reply.Message.Parts[0].GetText().Text != long {
		t.Fatalf("another text came back: %v", err)
	}
	_, err = stub(client).AppendMessage(within(t), userMessage(session, strings.Repeat("x", 16<<20)))
	wantStatus(t, err, codes.InvalidArgument, "TOO_LONG")

	var group sync.WaitGroup
	for i := range 64 {
		group.Add(1)
		go func() {
			defer group.Done()
			text := strings.Repeat(fmt.Sprintf("%08d", i), 1<<18/8)
			sent, err := stub(client).AppendMessage(within(t), userMessage(session, text))
			if err != nil {
				t.Error(err)
				return
			}
			reply, err := stub(client).GetMessage(within(t), &tinev1.GetMessageRequest{
				By: &tinev1.GetMessageRequest_MessageId{MessageId: sent.Receipt.Id},
			})
			if err != nil || reply.Message.Parts[0].GetText().Text != text {
				t.Errorf("another text came back: %v", err)
			}
		}()
	}
	group.Wait()
}

// Calls that end at any moment leave the connection usable.
func TestCallsThatAreCancelledAtAnyMoment(t *testing.T) {
	d := startDaemon(t)
	checkLeaks(t, func() {
		client := dial(t, d.URL())
		session := createSession(t, client)
		var group sync.WaitGroup
		for i := range 40 {
			group.Add(1)
			go func() {
				defer group.Done()
				for j := range 50 {
					ctx, cancel := context.WithTimeout(context.Background(),
						time.Duration(i*j%40)*20*time.Microsecond)
					reply, err := stub(client).GetSession(ctx,
						&tinev1.GetSessionRequest{SessionId: session})
					if err == nil && reply.Session.Id != session {
						t.Errorf("the reply of another call: %v", reply)
					}
					if err != nil && status.Code(err) != codes.DeadlineExceeded {
						t.Error(err)
					}
					cancel()
				}
			}()
		}
		group.Wait()
		if err := health(within(t), client); err != nil {
			t.Error(err)
		}
		client.Close()
	})
}

// Callers that are sometimes alone keep changing who reads.
func TestAFewCallersTakeTurnsAtReading(t *testing.T) {
	d := startDaemon(t)
	client := dial(t, d.URL())
	session := createSession(t, client)
	var group sync.WaitGroup
	for i := range 3 {
		group.Add(1)
		go func() {
			defer group.Done()
			for j := range 1000 {
				if j%(10+i) == 0 {
					time.Sleep(time.Duration(i*100) * time.Microsecond)
				}
				reply, err := stub(client).GetSession(within(t),
					&tinev1.GetSessionRequest{SessionId: session})
				if err != nil || reply.Session.Id != session {
					t.Errorf("%v: %v", reply, err)
				}
			}
		}()
	}
	group.Wait()
}

func TestTCPAsksForAToken(t *testing.T) {
	directory := scratch(t)
	const token = "0123456789abcdef0123456789abcdef"
	if err := os.WriteFile(directory+"/token", []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freePort(t)
	startDaemon(t, "--listen", "tcp://"+address, "--token-file", directory+"/token")
	waitForTCP(t, address, token)
	client := dial(t, "tcp://"+address, WithToken(token))
	session := createSession(t, client)
	long := strings.Repeat("x", 3<<20)
	appendUser(t, client, session, long)
	if got := history(t, client, session); len(got) != 1 || got[0] != long {
		t.Errorf("%d messages", len(got))
	}
	wrong := dial(t, "tcp://"+address, WithToken("another token of that length"))
	wantStatus(t, health(within(t), wrong), codes.Unauthenticated, "UNAUTHENTICATED")
	wantStatus(t, health(within(t), dial(t, "tcp://"+address)), codes.Unauthenticated, "UNAUTHENTICATED")
}
