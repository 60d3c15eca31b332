package tine

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tine-store/tine/client/go/tinev1"
)

func TestACallWhoseConnectionBrokeIsNotSentAgainByItself(t *testing.T) {
	s := serve(t, func(c *serverCall) {
		if c.number == 0 {
			c.connection.Close()
			return
		}
		c.ok()
	})
	client := dial(t, s.url())
	_, err := stub(client).AppendMessage(within(t), userMessage("s", "x"))
	wantStatus(t, err, codes.Unavailable, "UNAVAILABLE")
	if !strings.Contains(err.Error(), "whether the call was done is not known") {
		t.Errorf("%v", err)
	}
	if _, requests := s.count(); requests != 1 {
		t.Errorf("%d requests", requests)
	}
	invokePatiently(t, client) // the client waits before it connects again
	if err := health(within(t), client); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

func TestRetriesCarryTheSameOperationID(t *testing.T) {
	s := serve(t, func(c *serverCall) {
		switch c.number {
		case 0, 1:
			c.connection.Close()
		case 2: // tined answers so if it did not run the call
			c.reply(&tinev1.Response{Status: &tinev1.Status{Code: int32(codes.Unavailable)}})
		default:
			c.ok()
		}
	})
	client := dial(t, s.url(), WithRetry(limit))
	if _, err := stub(client).AppendMessage(context.Background(), userMessage("s", "x")); err != nil {
		t.Fatal(err)
	}
	if _, requests := s.count(); requests != 4 {
		t.Fatalf("%d requests", requests)
	}
	for i := range 4 {
		if id := s.request(i).OperationId; id == "" || id != s.request(0).OperationId {
			t.Errorf("request %d carries %q", i, id)
		}
	}
}

func TestWhatMayHappenTwiceIsNotRetried(t *testing.T) {
	s := serve(t, func(c *serverCall) { c.connection.Close() })
	client := dial(t, s.url(), WithRetry(limit))
	_, err := stub(client).AppendMessage(WithOperationID(within(t), ""), userMessage("s", "x"))
	wantStatus(t, err, codes.Unavailable, "UNAVAILABLE")
	_, err = stub(client).BroadcastEvent(within(t), &tinev1.BroadcastEventRequest{Type: "x"})
	wantStatus(t, err, codes.Unavailable, "UNAVAILABLE")
	if _, requests := s.count(); requests != 2 {
		t.Errorf("%d requests", requests)
	}
}

func TestRetriesEndInTime(t *testing.T) {
	client := dial(t, schemeIPC+scratch(t)+"/nobody.sock", WithRetry(100*time.Millisecond))
	wantStatus(t, health(context.Background(), client), codes.Unavailable, "UNAVAILABLE")
	client = dial(t, schemeIPC+scratch(t)+"/nobody.sock", WithRetry(limit))
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	wantStatus(t, health(ctx, client), codes.DeadlineExceeded, "DEADLINE_EXCEEDED")
}

// The first byte that is sent over a connection shows that the server has closed it.
func TestAStaleConnectionIsMadeAgain(t *testing.T) {
	s := serve(t, (*serverCall).ok)
	client := dial(t, s.url())
	for i := range 20 {
		if _, err := stub(client).AppendMessage(within(t), userMessage("s", "x")); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		s.hangUp()
	}
	if _, requests := s.count(); requests != 20 {
		t.Errorf("%d requests", requests)
	}
}

func TestNobodyListens(t *testing.T) {
	client := dial(t, schemeIPC+scratch(t)+"/nobody.sock")
	for range 3 {
		err := health(within(t), client)
		wantStatus(t, err, codes.Unavailable, "UNAVAILABLE")
		if !strings.Contains(err.Error(), "no such file") {
			t.Errorf("%v", err)
		}
	}
}
