package tine

// The stream of WatchEvents, made of the bus and ListEvents (docs/wire.md, "Watching, for who
// writes a client"; client/c/watch.c is the same in C).
//
// ListEvents is complete: the sequences of a store have no gaps and never repeat. The bus is fast
// but may lose events. So a watch subscribes, then lists, then takes from the bus the event that
// follows its position, drops events before the position, and lists again if an event is missing.
// Without a bus the watch lists, and the server holds the call until there is an event.

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tine-store/tine/client/go/tinev1"
)

const (
	busSilence   = 15 * time.Second // three heartbeats
	busRetry     = 50 * time.Millisecond
	busRetryMax  = 30 * time.Second
	firstMessage = 100 * time.Millisecond // how long a watch waits for it before it begins
	unsureMin    = 5 * time.Millisecond   // between listings until the first message …
	unsureMax    = 160 * time.Millisecond // … doubling each time
	listWait     = 30 * time.Second       // how long the server may hold a listing
	listReply    = 5 * time.Second        // beyond that, to connect and to answer
	pageEvents   = 1000
	pauseMin     = 20 * time.Millisecond
	pauseMax     = time.Second
	startsMax    = 5

	kindSessionPurged = "session.purged"
)

// watch is the stream of WatchEvents. One goroutine receives; the watch has no goroutine of its
// own.
type watch struct {
	client    *Client
	outer     context.Context // the caller's
	ctx       context.Context // ends with outer, with the client, or after an error
	cancel    context.CancelFunc
	options   callOptions
	link      *link // its own, because a listing that waits would occupy the place of a call
	err       error // why the stream ended
	isStarted bool

	request      *tinev1.WatchEventsRequest
	topic        string // the prefix of the session's topics
	instanceID   string
	after        uint64 // the sequence of the last event that was returned or skipped
	page         *tinev1.ListEventsResponse
	pageIndex    int
	pause        time.Duration // after empty replies that came early
	listFailures int

	bus            *bus
	isBehind       bool      // there may be events that the bus did not or will not send
	toldNewest     uint64    // the newest sequence on the bus when it showed a gap
	heard          time.Time // when the last message came, or the subscription was made
	asked          time.Time // when the caller began to wait for the next event
	unsure         time.Duration
	busFailures    int
	subscribeAfter time.Time
}

var _ grpc.ClientStream = (*watch)(nil)

// NewStream begins a stream for the generated stubs. The only stream is WatchEvents. It releases
// its resources when the context ends, or after an error.
func (c *Client) NewStream(
	ctx context.Context, _ *grpc.StreamDesc, path string, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	wanted, err := readCallOptions(opts)
	if err != nil {
		return nil, err
	}
	if path != tinev1.StoreService_WatchEvents_FullMethodName {
		return nil, failure(codes.Unimplemented, Unimplemented, "%s is not a stream", path)
	}
	w := &watch{client: c, outer: ctx, options: wanted}
	w.ctx, w.cancel = context.WithCancel(ctx)
	w.link = newLink(w.ctx, c.address, c.starter) // before Close can see the stream
	c.mutex.Lock()
	isOpen := c.streams != nil
	if isOpen {
		c.streams[w] = struct{}{}
	}
	c.mutex.Unlock()
	if !isOpen {
		w.cancel()
		return nil, closedError()
	}
	context.AfterFunc(w.ctx, w.leave)
	return w, nil
}

// leave removes the stream from the client's list.
func (w *watch) leave() {
	w.client.mutex.Lock()
	delete(w.client.streams, w)
	w.client.mutex.Unlock()
}

// shutdown ends the stream. Any goroutine may call it.
func (w *watch) shutdown() {
	w.cancel()
	w.link.shutdown()
}

// Header returns nothing: there is no HTTP below.
func (w *watch) Header() (metadata.MD, error) { return metadata.MD{}, nil }

// Trailer returns tine-reason if the stream has failed.
func (w *watch) Trailer() metadata.MD {
	if reason := ReasonOf(w.err); reason != "" {
		return metadata.Pairs(metadataReason, string(reason))
	}
	return metadata.MD{}
}

// CloseSend does nothing: the stream has one request.
func (w *watch) CloseSend() error { return nil }

// Context returns the stream's context.
func (w *watch) Context() context.Context { return w.ctx }

// SendMsg takes the WatchEventsRequest and begins to watch. The stream receives all events that are
// written after SendMsg returned.
func (w *watch) SendMsg(message any) error {
	w.request = new(tinev1.WatchEventsRequest)
	if err := copyMessage(message, w.request); err != nil {
		return w.end(err)
	}
	w.instanceID = w.request.InstanceId
	w.after = w.request.AfterSequence
	if w.request.SessionId != "" {
		w.topic = "session/" + w.request.SessionId + "/"
	}
	for {
		err := w.start()
		if err == nil {
			w.isStarted = true
			return nil
		}
		isPatient := w.options.patience == patient || w.client.options.retry > 0
		if !isPatient || !w.mayGoOn(err) {
			return w.end(err)
		}
	}
}

// RecvMsg waits for the next event.
func (w *watch) RecvMsg(message any) error {
	if w.err != nil {
		return w.err
	}
	if !w.isStarted {
		return w.end(failure(codes.Internal, Internal, "the stream has had no request"))
	}
	w.asked = time.Now()
	event, err := w.next()
	if err != nil {
		return w.end(err)
	}
	if out, ok := message.(*tinev1.WatchEventsResponse); ok {
		out.Reset()
		out.Event = event
		return nil
	}
	if err := copyMessage(&tinev1.WatchEventsResponse{Event: event}, message); err != nil {
		return w.end(err)
	}
	return nil
}

// end notes why the stream ended and releases its resources.
func (w *watch) end(err error) error {
	switch {
	case w.client.closed.Err() != nil:
		err = closedError()
	case w.outer.Err() != nil:
		err = watchEnded(w.outer.Err())
	}
	w.err = err
	w.shutdown()
	w.options.finish(err)
	return err
}

func watchEnded(err error) error {
	ended := contextError(err, false)
	ended.message = "the watch was cancelled"
	if ended.code == codes.DeadlineExceeded {
		ended.message = "the time of the watch is up"
	}
	return ended
}

// start finds the first position and lists the first page. The page names the store, and tined
// refuses a position that is not the store's. The oldest event may be pruned before it is listed;
// then start tries again.
func (w *watch) start() error {
	w.keepBus()
	if w.bus != nil && !w.bus.isLive {
		// The message can be dropped: it was sent before the watch began.
		if _, err := w.bus.next(time.Now().Add(firstMessage)); err != nil {
			w.dropBus()
		}
	}
	isGiven := w.request.Start == tinev1.WatchStart_WATCH_START_AFTER
	for attempt := 1; ; attempt++ {
		if !isGiven {
			if err := w.findStart(); err != nil {
				return err
			}
		}
		err := w.list(0)
		if isGiven || attempt == startsMax || status.Code(err) != codes.OutOfRange {
			return err
		}
	}
}

func (w *watch) findStart() error {
	ctx, cancel := context.WithTimeout(w.ctx, listReply)
	defer cancel()
	var stats tinev1.StatsResponse
	err := w.client.invoke(ctx, w.link, tinev1.StoreService_Stats_FullMethodName,
		&tinev1.StatsRequest{}, &stats, impatient)
	if err != nil {
		return err
	}
	w.after = stats.NewestEventSequence
	isOldest := w.request.Start == tinev1.WatchStart_WATCH_START_OLDEST
	if isOldest && stats.OldestEventSequence > 0 {
		w.after = stats.OldestEventSequence - 1
	}
	return nil
}

func (w *watch) next() (*tinev1.Event, error) {
	for {
		if err := w.ctx.Err(); err != nil {
			return nil, err
		}
		if event := w.takeOfPage(); event != nil {
			return event, nil
		}
		w.keepBus()
		if w.bus != nil && !w.isBehind {
			if event := w.takeOfBus(); event != nil {
				return event, nil
			}
			if w.bus != nil && !w.isBehind {
				continue
			}
		}
		wait := time.Duration(0)
		if w.bus == nil {
			wait = w.waitForNews()
		}
		if err := w.list(wait); err != nil && !w.mayGoOn(err) {
			return nil, err
		}
	}
}

// mayGoOn reports whether a listing failed for a reason that may pass. In that case it has paused.
func (w *watch) mayGoOn(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted:
	default:
		return false
	}
	w.busFailures = 0 // the next tined may have a bus
	w.listFailures++
	w.sleep(backoff(backoffMin, w.listFailures))
	return w.ctx.Err() == nil
}

func (w *watch) sleep(pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.ctx.Done():
	}
}

// Listing.

// waitForNews returns how long the server may hold a listing: not longer than until the next
// attempt to subscribe.
func (w *watch) waitForNews() time.Duration {
	if w.client.address.events() == "" {
		return listWait
	}
	return min(max(time.Until(w.subscribeAfter), time.Millisecond), listWait)
}

// list fetches the page after the position.
func (w *watch) list(wait time.Duration) error {
	ctx, cancel := context.WithTimeout(w.ctx, wait+listReply)
	defer cancel()
	begun := time.Now()
	page := new(tinev1.ListEventsResponse)
	wanted := impatient
	if w.isStarted {
		wanted = patient // wait for a tined that is being restarted
	}
	err := w.client.invoke(ctx, w.link, tinev1.StoreService_ListEvents_FullMethodName,
		&tinev1.ListEventsRequest{
			AfterSequence: w.after,
			SessionId:     w.request.SessionId,
			InstanceId:    w.instanceID,
			Limit:         pageEvents,
			WaitMs:        uint32(wait.Milliseconds()),
		}, page, wanted)
	if err != nil {
		return err
	}
	w.listFailures = 0
	w.replacePage(page)
	if len(page.Events) == 0 && !page.More && wait > 0 {
		w.pauseIfHurried(wait, begun)
	}
	return nil
}

// replacePage makes a page the current one. All events of the page before have been returned.
func (w *watch) replacePage(page *tinev1.ListEventsResponse) {
	if w.instanceID == "" {
		w.instanceID = page.InstanceId
	}
	w.page, w.pageIndex = page, 0
	if len(page.Events) > 0 {
		w.pause = 0
	} else {
		w.after = page.NextAfterSequence
	}
	if page.More {
		return
	}
	w.isBehind = false
	if w.bus != nil && page.NewestSequence < w.toldNewest {
		// The bus sent sequences that the store does not have: it is another store's bus.
		w.dropBus()
	}
	w.toldNewest = 0
}

// pauseIfHurried pauses if the server returned an empty page early: it holds too many calls, or is
// about to stop. Without the pause the watch would call it in a loop.
func (w *watch) pauseIfHurried(asked time.Duration, begun time.Time) {
	if time.Since(begun) > asked/2 {
		return
	}
	w.pause = min(max(2*w.pause, pauseMin), pauseMax)
	w.sleep(w.pause)
}

// takeOfPage returns the next event of the page that the request asks for; nil if there is none.
func (w *watch) takeOfPage() *tinev1.Event {
	for w.page != nil && w.pageIndex < len(w.page.Events) {
		event := w.page.Events[w.pageIndex]
		w.pageIndex++
		w.after = event.Sequence
		if w.pageIndex == len(w.page.Events) {
			w.after = w.page.NextAfterSequence
		}
		if strings.HasPrefix(event.Type, w.request.TypePrefix) {
			return event
		}
	}
	w.page = nil
	return nil
}

// copyMessage copies a message into one of the same type, which may come from another package.
func copyMessage(from, to any) error {
	source, ok := from.(proto.Message)
	target, isMessage := to.(proto.Message)
	if !ok || !isMessage {
		return failure(codes.Internal, Internal, "%T and %T are not both messages", from, to)
	}
	bytes, err := proto.Marshal(source)
	if err == nil {
		err = proto.Unmarshal(bytes, target)
	}
	if err != nil {
		return failure(codes.Internal, Internal, "the message cannot be copied: %s", err)
	}
	return nil
}
