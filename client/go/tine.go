// Package tine connects to tined, the daemon that keeps the conversations of AI agents.
//
// Dial returns a grpc.ClientConnInterface, so the stubs are those of protoc-gen-go-grpc (package
// tinev1), and errors are those of google.golang.org/grpc/status; but there is no gRPC below them:
// protobuf messages go over tined's own socket, without a library that is not Go.
//
//	client, err := tine.Dial("")
//	store := tinev1.NewStoreServiceClient(client)
//	reply, err := store.GetSession(ctx, &tinev1.GetSessionRequest{SessionId: id})
//
// Calls share one connection, which is made by the first call and again when it broke. At most 64
// are in flight; the next ones wait their turn. A call ends when its context does. One whose
// connection broke is Unavailable, and the message says whether it may have been done; WithRetry
// has it sent again under the same operation id, so that a write happens once.
//
// WatchEvents is a stream that goes on through lost connections and restarts of tined, without a
// gap and without an event twice.
//
// What a call carries beside its request is outgoing gRPC metadata: tine-operation-id (a write's;
// one is made unless it is given, "" says none), tine-token, traceparent, and tine-sync, whose value
// 1 asks a relaxed tined to answer when this call, and all before it, is on the disk.
package tine

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// Client is a connection to one tined, for any number of goroutines.
type Client struct {
	options options
	address address
	starter *starter
	link    *link
	closed  context.Context
	close   context.CancelFunc

	mutex   sync.Mutex
	streams map[*watch]struct{}
}

var _ grpc.ClientConnInterface = (*Client)(nil)

type options struct {
	token  string
	retry  time.Duration
	starts bool

	busSilence, busRetry time.Duration // tests shorten them
}

// Option is what may be said to Dial.
type Option func(*options)

// WithToken gives the token that a tined on tcp asks for. The metadata tine-token of a call goes
// before it.
func WithToken(token string) Option {
	return func(o *options) { o.token = token }
}

// WithRetry has calls whose connection broke, and those that tined refused as Unavailable, sent
// again until their deadline, or for so long if they have none: those that did not leave, reads,
// and writes with an operation id, which tined runs once however often they come. BroadcastEvent is
// not sent again, for nothing remembers it.
func WithRetry(limit time.Duration) Option {
	return func(o *options) { o.retry = limit }
}

// WithStart starts a tined when none listens on the Unix socket: $TINED, or the one in $PATH. It
// ends half an hour after its last client and writes to $XDG_STATE_HOME/tine/tined.log. Linux only.
func WithStart() Option {
	return func(o *options) { o.starts = true }
}

// Dial makes a client of the tined behind a URL. It does not connect: the first call does.
//
//	ipc:///run/user/1000/tine/tine.sock    a Unix socket
//	tcp://127.0.0.1:7461                   with a token (WithToken)
//	(none)                                 where the command line looks: $TINE_URL; $TINE_SOCKET, a
//	                                       path or a URL; $XDG_RUNTIME_DIR/tine/tine.sock; in /tmp
func Dial(url string, opts ...Option) (*Client, error) {
	client := &Client{
		options: options{busSilence: busSilence, busRetry: busRetry},
		streams: map[*watch]struct{}{},
	}
	for _, option := range opts {
		option(&client.options)
	}
	var err error
	client.address, err = parseURL(url)
	if err != nil {
		return nil, err
	}
	if client.options.starts {
		client.starter, err = newStarter(client.address)
		if err != nil {
			return nil, err
		}
	}
	client.closed, client.close = context.WithCancel(context.Background())
	client.link = newLink(client.closed, client.address, client.starter)
	return client, nil
}

// Close ends the client: calls and streams in flight, and later ones, are Canceled.
func (c *Client) Close() error {
	c.close()
	c.link.shutdown()
	c.mutex.Lock()
	streams := c.streams
	c.streams = nil
	c.mutex.Unlock()
	for stream := range streams {
		stream.shutdown()
	}
	return nil
}

// WithOperationID returns a context whose write carries this operation id: the same one again,
// within a day, changes nothing and is answered as the first time. "" says none.
func WithOperationID(ctx context.Context, id string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, metadataOperationID, id)
}
