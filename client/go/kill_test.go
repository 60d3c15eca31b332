package tine

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tine-store/tine/client/go/tinetest"
	"github.com/tine-store/tine/client/go/tinev1"
)

const (
	kills       = 5
	killWriters = 8
)

// ledger records how the writes ended.
type ledger struct {
	mutex   sync.Mutex
	done    map[string]string // the message's id, by text
	unknown map[string]bool   // the texts of writes that may have been done
}

// write appends texts until the context ends, each once.
func (l *ledger) write(ctx context.Context, t *testing.T, client *Client, session string, writer int) {
	for i := 0; ctx.Err() == nil; i++ {
		text := fmt.Sprintf("%d/%d", writer, i)
		reply, err := stub(client).AppendMessage(within(t), userMessage(session, text))
		l.mutex.Lock()
		switch {
		case err == nil:
			l.done[text] = reply.Receipt.Id
		case status.Code(err) == codes.Unavailable:
			l.unknown[text] = true
		default:
			t.Errorf("%s: %v", text, err)
		}
		l.mutex.Unlock()
	}
}

// check compares the ledger with the store: acknowledged writes are there once, others at most
// once.
func (l *ledger) check(t *testing.T, texts []string) {
	count := map[string]int{}
	for _, text := range texts {
		count[text]++
		if _, ok := l.done[text]; !ok && !l.unknown[text] {
			t.Errorf("%s was never sent", text)
		}
		if count[text] > 1 {
			t.Errorf("%s is there %d times", text, count[text])
		}
	}
	for text := range l.done {
		if count[text] == 0 {
			t.Errorf("%s was acknowledged and is lost", text)
		}
	}
}

// killUnderLoad kills the daemon several times while writers and a watch run, then checks both.
func killUnderLoad(t *testing.T, opts ...Option) *ledger {
	d := startDaemon(t)
	client := dial(t, d.URL(), opts...)
	session := createSession(t, client)
	l := &ledger{done: map[string]string{}, unknown: map[string]bool{}}
	stream := watchEvents(t, client, &tinev1.WatchEventsRequest{})

	writing, stop := context.WithCancel(context.Background())
	defer stop()
	var group sync.WaitGroup
	for i := range killWriters {
		group.Add(1)
		go func() { defer group.Done(); l.write(writing, t, client, session, i) }()
	}
	written := func() int {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		return len(l.done)
	}
	for range kills {
		before := written()
		eventually(t, "writes", func() bool { return written() >= before+50 })
		d.Kill()
		d.Start()
	}
	before := written()
	eventually(t, "writes after the last kill", func() bool { return written() >= before+50 })
	stop()
	group.Wait()

	texts := history(t, client, session)
	l.check(t, texts)
	seen := map[string]int{}
	for _, id := range receiveMessages(t, stream, len(texts)) {
		seen[id]++
	}
	for text, id := range l.done {
		if seen[id] != 1 {
			t.Errorf("the watch told %d times of %s", seen[id], text)
		}
	}
	return l
}

func TestKillsWithRetriesLoseNothingAndFailNothing(t *testing.T) {
	l := killUnderLoad(t, WithRetry(limit))
	for text := range l.unknown {
		t.Errorf("%s failed", text)
	}
}

func TestKillsWithoutRetriesFailWhatWasInFlight(t *testing.T) {
	l := killUnderLoad(t)
	if len(l.unknown) == 0 {
		t.Error("no call noticed that its server was killed")
	}
}

func TestAWatchOutlivesItsServer(t *testing.T) {
	ways(t, func(t *testing.T, d *tinetest.Daemon, url string) {
		client := dialWay(t, url)
		session := createSession(t, client)
		stream := watchEvents(t, client, &tinev1.WatchEventsRequest{SessionId: session})
		writer := dial(t, d.URL(), WithRetry(limit))
		for range 3 {
			want := appendUser(t, writer, session, "before").Id
			if got := receiveMessages(t, stream, 1); got[0] != want {
				t.Fatalf("%s, wanted %s", got[0], want)
			}
			d.Kill()
			ended := make(chan string)
			go func() { ended <- receiveMessages(t, stream, 1)[0] }()
			d.Start()
			want = appendUser(t, writer, session, "after").Id
			if got := <-ended; got != want {
				t.Fatalf("%s, wanted %s", got, want)
			}
		}
	})
}
