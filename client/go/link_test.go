package tine

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tine-store/tine/client/go/tinev1"
)

func TestBackoffGrowsToTwoSeconds(t *testing.T) {
	for _, first := range []time.Duration{backoffMin, backoffNobodyMin} {
		most := first
		for failures := 1; failures < 100; failures++ {
			pause := backoff(first, failures)
			if pause > most || pause < most*4/5 {
				t.Errorf("%v after %d failures; wanted %v or up to a fifth less", pause, failures, most)
			}
			most = min(2*most, backoffMax)
		}
		if most != 2*time.Second {
			t.Errorf("%v", most)
		}
	}
}

// fakeClock replaces a link's clock. Its time passes only while the link pauses, and each pause
// ends at once.
type fakeClock struct {
	now    time.Time
	pauses []time.Duration
	pause  func(count int) // called at each pause, with the number of pauses so far
}

func (c *fakeClock) install(l *link) {
	c.now = time.Now()
	l.now = func() time.Time { return c.now }
	l.after = func(pause time.Duration) <-chan time.Time {
		c.pauses = append(c.pauses, pause)
		c.now = c.now.Add(pause)
		if c.pause != nil {
			c.pause(len(c.pauses))
		}
		ended := make(chan time.Time, 1)
		ended <- c.now
		return ended
	}
}

func (c *fakeClock) wantPauses(t *testing.T, first time.Duration, count int) {
	t.Helper()
	if len(c.pauses) != count {
		t.Errorf("%d pauses, wanted %d: %v", len(c.pauses), count, c.pauses)
	}
	for i, pause := range c.pauses {
		if most := first << i; pause > most || pause < most*4/5 {
			t.Errorf("pause %d is %v, wanted %v or up to a fifth less", i, pause, most)
		}
	}
}

// A tined that is being started listens after a few milliseconds.
func TestPausesAreShortWhileNobodyListens(t *testing.T) {
	const attempts = 5
	for name, prepare := range map[string]func(t *testing.T, socket string){
		"no such file": func(*testing.T, string) {},
		"refused": func(t *testing.T, socket string) {
			listener, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			listener.(*net.UnixListener).SetUnlinkOnClose(false)
			listener.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			socket := filepath.Join(scratch(t), "s.sock")
			prepare(t, socket)
			client := dial(t, schemeIPC+socket)
			clock := fakeClock{pause: func(count int) {
				if count == attempts {
					_ = os.Remove(socket)
					serveAt(t, socket, (*serverCall).ok)
				}
			}}
			clock.install(client.link)
			invokePatiently(t, client)
			clock.wantPauses(t, time.Millisecond, attempts)
		})
	}
}

// A server that is there and fails is given more time.
func TestPausesAreLongerWhileAServerHangsUp(t *testing.T) {
	const attempts = 3
	socket := filepath.Join(scratch(t), "s.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			connection.Close()
		}
	}()
	client := dial(t, schemeIPC+socket)
	clock := fakeClock{pause: func(count int) {
		if count == attempts {
			listener.Close()
			serveAt(t, socket, (*serverCall).ok)
		}
	}}
	clock.install(client.link)
	invokePatiently(t, client)
	clock.wantPauses(t, backoffMin, attempts)
}

func TestReadyWaitsUntilAServerListens(t *testing.T) {
	const attempts = 3
	socket := filepath.Join(scratch(t), "s.sock")
	client := dial(t, schemeIPC+socket)
	clock := fakeClock{pause: func(count int) {
		if count == attempts {
			serveAt(t, socket, (*serverCall).ok)
		}
	}}
	clock.install(client.link)
	if err := client.Ready(within(t)); err != nil {
		t.Fatal(err)
	}
	clock.wantPauses(t, backoffNobodyMin, attempts)
}

// A tined that stops refuses calls, or breaks their connections, before its socket is gone.
func TestReadyWaitsThroughTheEndOfAServer(t *testing.T) {
	s := serve(t, func(c *serverCall) {
		switch c.number {
		case 0, 1:
			c.reply(&tinev1.Response{Status: &tinev1.Status{
				Code: int32(codes.Unavailable), Reason: string(Unavailable),
			}})
		case 2:
			c.connection.Close()
		default:
			c.ok()
		}
	})
	client := dial(t, s.url())
	clock := fakeClock{}
	clock.install(client.link)
	if err := client.Ready(context.Background()); err != nil {
		t.Error(err)
	}
	if _, requests := s.count(); requests != 4 {
		t.Errorf("%d requests", requests)
	}
}

func TestReadyEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	client := dial(t, schemeIPC+scratch(t)+"/nobody.sock")
	clock := fakeClock{pause: func(count int) {
		if count == 3 {
			cancel()
		}
	}}
	clock.install(client.link)
	err := client.Ready(ctx)
	wantStatus(t, err, codes.Canceled, Cancelled)
	if !strings.Contains(err.Error(), "no such file") {
		t.Errorf("the last failure is missing: %v", err)
	}
	wantStatus(t, client.Ready(ctx), codes.Canceled, Cancelled)

}

func TestReadyReturnsAtOnceWhatWaitingDoesNotMend(t *testing.T) {
	s := serve(t, func(c *serverCall) {
		c.reply(&tinev1.Response{Status: &tinev1.Status{
			Code: int32(codes.Unauthenticated), Reason: string(Unauthenticated),
		}})
	})
	client := dial(t, s.url())
	wantStatus(t, client.Ready(context.Background()), codes.Unauthenticated, Unauthenticated)
	client.Close()
	wantStatus(t, client.Ready(context.Background()), codes.Canceled, Cancelled)
}
