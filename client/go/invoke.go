package tine

// One call: its envelope, its attempts, and the call options and metadata of gRPC.

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"math"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/tine-store/tine/client/go/tinev1"
)

const (
	metadataOperationID = "tine-operation-id"
	metadataTraceparent = "traceparent"
	metadataToken       = "tine-token"
	metadataSync        = "tine-sync"
	metadataReason      = "tine-reason"
)

// exchange is one call with all its attempts.
type exchange struct {
	link         *link
	head         requestHead
	args, reply  proto.Message
	isRepeatable bool
	patience     patience
	retryUntil   time.Time // zero: one attempt
}

// Invoke makes a call for the generated stubs. It supports the call options Header, Trailer (which
// gets tine-reason if the call failed) and WaitForReady. It refuses those that have no meaning
// without HTTP: codecs, compressors and credentials. It ignores the others.
func (c *Client) Invoke(
	ctx context.Context, path string, args, reply any, opts ...grpc.CallOption,
) error {
	wanted, err := readCallOptions(opts)
	if err == nil {
		err = c.invoke(ctx, c.link, path, args, reply, wanted.patience)
	}
	wanted.finish(err)
	return err
}

func (c *Client) invoke(
	ctx context.Context, l *link, path string, args, reply any, p patience,
) error {
	request, ok := args.(proto.Message)
	response, isMessage := reply.(proto.Message)
	if !ok || !isMessage {
		return failure(codes.Internal, Internal,
			"%T and %T are not both protobuf messages", args, reply)
	}
	if err := ctx.Err(); err != nil {
		return contextError(err, false)
	}
	e := exchange{link: l, args: request, reply: response, patience: p}
	if err := e.begin(ctx, c, path); err != nil {
		return err
	}
	if c.options.retry > 0 {
		e.retryFor(ctx, c.options.retry)
		e.patience = patient
	}
	return e.run(ctx)
}

// Ready waits until tined answers. With WithStart it starts one if none listens. It returns nil
// when tined has answered. It returns an error at once if waiting does not help: tined cannot be
// started, or it refuses the token. Otherwise it returns an error when the context ends, which says
// why the last attempt failed.
func (c *Client) Ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return contextError(err, false)
	}
	e := exchange{
		link: c.link, args: new(tinev1.HealthRequest), reply: new(tinev1.HealthResponse),
		patience: patientUnlessPermanent,
	}
	if err := e.begin(ctx, c, tinev1.StoreService_Health_FullMethodName); err != nil {
		return err
	}
	e.retryFor(ctx, math.MaxInt64)
	return e.run(ctx)
}

// retryFor allows further attempts until the context's deadline, or for the given time if it has
// none.
func (e *exchange) retryFor(ctx context.Context, limit time.Duration) {
	e.retryUntil = time.Now().Add(limit)
	if deadline, ok := ctx.Deadline(); ok {
		e.retryUntil = deadline
	}
}

// run makes the call, and makes it again while that is allowed.
func (e *exchange) run(ctx context.Context) error {
	for failures := 0; ; failures++ {
		mayRetry, err := e.try(ctx)
		if err == nil || !mayRetry {
			return err
		}
		// The first retry follows at once: a server that was restarted is there again.
		pause := time.Duration(0)
		if failures > 0 {
			pause = backoff(backoffMin, failures)
		}
		if !time.Now().Add(pause).Before(e.retryUntil) || e.link.sleep(ctx, pause) != nil {
			return err
		}
	}
}

// begin makes what all attempts share.
func (e *exchange) begin(ctx context.Context, c *Client, path string) error {
	known := methods()[path]
	e.head = requestHead{method: path, token: c.options.token}
	isMade := !known.isRead
	if said, ok := metadata.FromOutgoingContext(ctx); ok {
		if values := said.Get(metadataOperationID); len(values) > 0 && !known.isRead {
			e.head.operationID, isMade = values[len(values)-1], false
		}
		if values := said.Get(metadataTraceparent); len(values) > 0 {
			e.head.traceparent = values[len(values)-1]
		}
		if values := said.Get(metadataToken); len(values) > 0 {
			e.head.token = values[len(values)-1]
		}
		if values := said.Get(metadataSync); len(values) > 0 {
			e.head.sync = values[len(values)-1] == "1"
		}
	}
	if isMade {
		id, err := newOperationID()
		if err != nil {
			return failure(codes.Internal, Internal, "no random bytes: %s", err)
		}
		e.head.operationID = id
	}
	e.isRepeatable = known.isRead || e.head.operationID != "" && known.isRemembered
	return nil
}

// try makes one attempt, and a second one if the first was not sent: a connection that the server
// has closed fails at the first byte.
func (e *exchange) try(ctx context.Context) (mayRetry bool, err error) {
	for first := true; ; first = false {
		mayRetry, err = e.attempt(ctx)
		if err == nil {
			return false, nil
		}
		var broken *brokenError
		if !errors.As(err, &broken) {
			return mayRetry, err
		}
		if e.link.closed.Err() != nil {
			return false, closedError()
		}
		if !broken.sent && ctx.Err() != nil {
			return false, contextError(ctx.Err(), false)
		}
		if !broken.sent && first {
			continue
		}
		mayRetry = !e.retryUntil.IsZero() && (!broken.sent || e.isRepeatable)
		return mayRetry, broken.status(e.link.address.String())
	}
}

func (e *exchange) attempt(ctx context.Context) (mayRetry bool, err error) {
	waits := ctx
	if _, hasDeadline := ctx.Deadline(); !hasDeadline && !e.retryUntil.IsZero() {
		var cancel context.CancelFunc
		waits, cancel = context.WithDeadline(ctx, e.retryUntil)
		defer cancel()
	}
	connection, err := e.link.connection(waits, e.patience)
	if err != nil {
		if waits.Err() != nil && ctx.Err() == nil {
			err = e.link.unavailable(e.link.lastFailure())
		}
		return false, err
	}
	f, err := e.frame(ctx, connection.transport)
	if err != nil {
		return false, err
	}
	s, err := connection.call(ctx, f)
	if err != nil {
		return false, err
	}
	defer connection.release(s)
	said, err := readResponse(s.reply)
	if err != nil {
		return false, failure(codes.Internal, Internal, "%s", err)
	}
	if said.code != codes.OK {
		// tined answers so only if it did not run the call.
		mayRetry = said.code == codes.Unavailable && !e.retryUntil.IsZero()
		return mayRetry, &statusError{code: said.code, reason: said.reason, message: said.message}
	}
	if err := proto.Unmarshal(said.body, e.reply); err != nil {
		return false, failure(codes.Internal, Internal, "%s", errNoResponse)
	}
	return false, nil
}

// frame encodes the request, with room in front for the frame's header and id.
func (e *exchange) frame(ctx context.Context, t transport) (*frame, error) {
	e.head.timeoutMS = timeoutMS(ctx)
	before := t.headerBytes() + idBytes
	f := frames.Get().(*frame)
	if cap(f.bytes) < before {
		f.bytes = make([]byte, before, 1024)
	}
	bytes, err := appendRequest(f.bytes[:before], &e.head, e.args)
	if err != nil {
		f.release()
		if errors.Is(err, errRequestTooLong) {
			return nil, failure(codes.InvalidArgument, TooLong, "%s", err)
		}
		return nil, failure(codes.Internal, Internal, "the request cannot be encoded: %s", err)
	}
	f.bytes = bytes
	t.putHeader(bytes, len(bytes)-t.headerBytes())
	return f, nil
}

// timeoutMS returns the time until the deadline, at least 1; 0 if there is no deadline.
func timeoutMS(ctx context.Context) int64 {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	left := time.Until(deadline)
	if left > math.MaxInt64-time.Millisecond {
		return 0
	}
	return max(int64((left+time.Millisecond-1)/time.Millisecond), 1)
}

// newOperationID returns 32 random characters.
func newOperationID() (string, error) {
	var bytes [16]byte
	if _, err := rand.Read(bytes[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(bytes[:]), nil
}

// callOptions are the call options of gRPC that this client supports.
type callOptions struct {
	patience         patience
	headers, trailer []*metadata.MD
}

func readCallOptions(opts []grpc.CallOption) (callOptions, error) {
	var wanted callOptions
	for _, option := range opts {
		switch option := option.(type) {
		case grpc.HeaderCallOption:
			wanted.headers = append(wanted.headers, option.HeaderAddr)
		case grpc.TrailerCallOption:
			wanted.trailer = append(wanted.trailer, option.TrailerAddr)
		case grpc.FailFastCallOption:
			wanted.patience = impatient
			if !option.FailFast {
				wanted.patience = patient
			}
		case grpc.ContentSubtypeCallOption, grpc.CustomCodecCallOption, grpc.ForceCodecCallOption,
			grpc.ForceCodecV2CallOption, grpc.CompressorCallOption, grpc.PerRPCCredsCallOption:
			return wanted, failure(codes.Unimplemented, Unimplemented,
				"the call option %T has no meaning here", option)
		}
	}
	return wanted, nil
}

// finish fills the targets of the options Header and Trailer.
func (o callOptions) finish(err error) {
	for _, header := range o.headers {
		*header = metadata.MD{}
	}
	for _, trailer := range o.trailer {
		*trailer = metadata.MD{}
		if reason := ReasonOf(err); reason != "" {
			trailer.Set(metadataReason, string(reason))
		}
	}
}
