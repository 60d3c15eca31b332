// Package tine is a client of tined, the daemon that stores the conversations of AI agents.
//
// Dial returns a grpc.ClientConnInterface. The stubs are those of protoc-gen-go-grpc (package
// tinev1), and errors are those of google.golang.org/grpc/status. There is no gRPC on the wire: the
// client sends protobuf messages over tined's own socket, and needs no native library.
//
//	client, err := tine.Dial("")
//	store := tinev1.NewStoreServiceClient(client)
//	reply, err := store.GetSession(ctx, &tinev1.GetSessionRequest{SessionId: id})
//
// All calls of a client share one connection. The first call makes it, and a later call makes a new
// one if it broke. At most 64 calls are in flight; further calls wait. A call ends when its context
// ends. A call whose connection broke fails with codes.Unavailable, and the message says whether
// tined may have run it. With WithRetry the client sends such a call again under the same operation
// id, so that a write runs once.
//
// An error has a Reason beside its code: Is(err, SessionNotFound). A malformed id is
// InvalidArgument, not a NotFound, and so is a limit that is too large.
//
// All and Pages range over the pages of a listing call.
//
// WatchEvents is a stream that survives lost connections and restarts of tined. It skips no event
// and repeats none.
//
// Further arguments of a call are outgoing gRPC metadata: tine-operation-id (of a write; the client
// makes one unless it is given, and "" means none), tine-token, traceparent, and tine-sync. With
// tine-sync 1 a relaxed tined answers when this call and all calls before it are on disk.
package tine

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// Client is a connection to one tined. Any number of goroutines may use it.
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

	busSilence, busRetry time.Duration // shorter in tests
}

// Option is an option of Dial.
type Option func(*options)

// WithToken sets the token that a tined on tcp requires. The metadata tine-token of a call
// overrides it.
func WithToken(token string) Option {
	return func(o *options) { o.token = token }
}

// WithRetry makes the client repeat a call whose connection broke, or that tined refused as
// Unavailable, until the call's deadline, or for the given time if it has none. It repeats calls
// that were not sent, reads, and writes with an operation id, which tined runs once however often
// it receives them. It does not repeat BroadcastEvent, because tined does not remember it.
func WithRetry(limit time.Duration) Option {
	return func(o *options) { o.retry = limit }
}

// WithStart starts a tined if none listens on the Unix socket: $TINED, or the tined in $PATH. It
// exits half an hour after its last client left, and logs to $XDG_STATE_HOME/tine/tined.log. Linux
// only.
func WithStart() Option {
	return func(o *options) { o.starts = true }
}

// Dial returns a client for the tined at a URL. It does not connect; the first call does, or Ready.
//
//	ipc:///run/user/1000/tine/tine.sock    a Unix socket; the path has at most 107 bytes
//	tcp://127.0.0.1:7461                   with a token (WithToken)
//	(empty)                                the command line's default: $TINE_URL; $TINE_SOCKET, a
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

// Close closes the client. Its calls and streams, those in flight and later ones, fail with
// codes.Canceled.
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

// WithOperationID returns a context whose write carries this operation id. A write that repeats an
// operation id within a day changes nothing and gets the first reply. "" means no operation id.
func WithOperationID(ctx context.Context, id string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, metadataOperationID, id)
}
