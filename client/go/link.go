package tine

// Connecting and reconnecting to tined, with a pause after each failed attempt.

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
)

const (
	connectWait = 5 * time.Second
	backoffMin  = 50 * time.Millisecond
	backoffMax  = 2 * time.Second

	// While nobody listens on the Unix socket: an attempt costs little, and a tined that is being
	// started listens within a few milliseconds.
	backoffNobodyMin = time.Millisecond
)

// link keeps one connection to an address. It makes the connection when a call needs it, and a new
// one after it broke.
type link struct {
	address address
	starter *starter // nil: the client does not start tined
	closed  context.Context
	close   context.CancelFunc
	now     func() time.Time // replaced in tests, as is the next field
	after   func(time.Duration) <-chan time.Time

	current  atomic.Pointer[conn]
	failures atomic.Int32 // in a row

	mutex        sync.Mutex
	attempt      *attempt // in progress
	connectAfter time.Time
	why          error // why the last attempt failed; nil: it did not
}

// attempt is one attempt to connect. All callers wait for the same one.
type attempt struct {
	done chan struct{}
	err  error
}

func newLink(parent context.Context, a address, s *starter) *link {
	l := &link{address: a, starter: s, now: time.Now, after: time.After}
	l.closed, l.close = context.WithCancel(parent)
	context.AfterFunc(l.closed, l.shutdown)
	return l
}

// shutdown breaks the connection. The link must be closed already.
func (l *link) shutdown() {
	l.mutex.Lock()
	c := l.current.Load()
	l.mutex.Unlock()
	if c != nil {
		c.breakWith(errors.New("the client is closed"))
	}
}

// patience says after which failed attempts to connect a caller goes on waiting.
type patience byte

const (
	impatient              patience = iota // none
	patientUnlessPermanent                 // all but those that end with a permanentError
	patient                                // all
)

// permanentError is a failure that a later attempt would meet again, as when tined cannot be
// started.
type permanentError struct{ why error }

func (e *permanentError) Error() string { return e.why.Error() }

func (p patience) waitsThrough(why error) bool {
	permanent := new(permanentError)
	return p == patient || p == patientUnlessPermanent && !errors.As(why, &permanent)
}

// connection returns the connection. It makes one if there is none.
func (l *link) connection(ctx context.Context, p patience) (*conn, error) {
	if c := l.current.Load(); c != nil {
		return c, nil
	}
	for {
		l.mutex.Lock()
		if l.closed.Err() != nil {
			l.mutex.Unlock()
			return nil, closedError()
		}
		if c := l.current.Load(); c != nil {
			l.mutex.Unlock()
			return c, nil
		}
		a := l.attempt
		pause := l.connectAfter.Sub(l.now())
		if a == nil && pause <= 0 {
			a = &attempt{done: make(chan struct{})}
			l.attempt = a
			go l.connect(a)
		}
		why := l.why
		l.mutex.Unlock()

		if a == nil {
			if p == impatient {
				return nil, l.unavailable(why)
			}
			if err := l.sleep(ctx, pause); err != nil {
				return nil, err
			}
			continue
		}
		select {
		case <-a.done:
		case <-ctx.Done():
			return nil, l.waitEnded(ctx.Err())
		}
		if a.err != nil && !p.waitsThrough(a.err) {
			return nil, l.unavailable(a.err)
		}
	}
}

// sleep pauses. It returns an error if the context or the client ends first.
func (l *link) sleep(ctx context.Context, pause time.Duration) error {
	select {
	case <-l.after(pause):
		return nil
	case <-ctx.Done():
		return l.waitEnded(ctx.Err())
	case <-l.closed.Done():
		return closedError()
	}
}

const unavailableFormat = "no tined answers at %s: %s"

func (l *link) unavailable(why error) error {
	if l.closed.Err() != nil {
		return closedError()
	}
	return failure(codes.Unavailable, Unavailable, unavailableFormat, l.address, why)
}

// waitEnded returns the error of a call whose context ended while it waited for the connection.
func (l *link) waitEnded(err error) error {
	ended := contextError(err, false)
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.why != nil {
		ended.message += "; " + fmt.Sprintf(unavailableFormat, l.address, l.why)
	}
	return ended
}

// connect makes an attempt and tells all callers that wait for it.
func (l *link) connect(a *attempt) {
	socket, err := l.dial()
	l.mutex.Lock()
	l.attempt = nil
	if err == nil && l.closed.Err() != nil {
		err = l.closed.Err()
		socket.Close()
	}
	if err != nil {
		a.err = err
		l.failed(err)
	} else {
		l.why = nil
		l.current.Store(newConn(l, socket, l.address.transport))
	}
	l.mutex.Unlock()
	close(a.done)
	if l.closed.Err() != nil {
		l.shutdown()
	}
}

func (l *link) dial() (net.Conn, error) {
	if err := l.address.check(); err != nil {
		return nil, &permanentError{err}
	}
	socket, err := l.dialOnce()
	if err != nil && l.starter != nil && isNobody(err) {
		return l.starter.start(l.closed, l.dialOnce)
	}
	return socket, err
}

func (l *link) dialOnce() (net.Conn, error) {
	ctx, cancel := context.WithTimeout(l.closed, connectWait)
	defer cancel()
	return dialSP(ctx, l.address.network(), l.address.target, protocolReq, protocolRep)
}

// isNobody reports whether an attempt failed because nobody listens.
func isNobody(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED)
}

// failed notes a failed attempt and when the next one may begin. The caller must hold the mutex.
func (l *link) failed(why error) {
	first := backoffMin
	if l.address.transport == transportIPC && isNobody(why) {
		first = backoffNobodyMin
	}
	l.why = why
	l.connectAfter = l.now().Add(backoff(first, int(l.failures.Add(1))))
}

// backoff returns the pause after a number of failures in a row. It doubles with each failure up to
// backoffMax, and is up to a fifth shorter, so that the clients of one server do not come at once.
func backoff(first time.Duration, failures int) time.Duration {
	pause := min(first<<min(max(failures-1, 0), 16), backoffMax)
	return pause - time.Duration(mathrand.Int64N(int64(pause)/5))
}

// lastFailure returns why the last attempt failed.
func (l *link) lastFailure() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.why == nil {
		return errors.New("it accepted, but did not say hello")
	}
	return l.why
}

// replied notes that a connection has received a reply.
func (l *link) replied() { l.failures.Store(0) }

// lost notes that a connection broke. A connection that never received a reply counts as a failed
// attempt, so that the client does not reconnect in a loop to a server that accepts and hangs up.
// The caller must hold the connection's mutex.
func (l *link) lost(c *conn, replied bool, why error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.current.CompareAndSwap(c, nil) && !replied {
		l.failed(why)
	}
}

// dialSP connects and exchanges hellos.
func dialSP(ctx context.Context, network, target string, own, other protocol) (net.Conn, error) {
	var dialer net.Dialer
	socket, err := dialer.DialContext(ctx, network, target)
	if err != nil {
		return nil, plainError(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = socket.SetDeadline(time.Unix(1, 0)) })
	err = exchangeHellos(socket, own, other)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		socket.Close()
		return nil, err
	}
	return socket, nil
}

func exchangeHellos(socket net.Conn, own, other protocol) error {
	said := hello(own)
	if _, err := socket.Write(said[:]); err != nil {
		return errors.New("it hung up before it said hello")
	}
	var heard [helloBytes]byte
	if _, err := io.ReadFull(socket, heard[:]); err != nil {
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return errors.New("it accepted, but did not say hello")
		}
		return errors.New("it hung up before it said hello")
	}
	return checkHello(heard, other)
}

// checkHello returns an error unless the hello is that of the wanted protocol.
func checkHello(heard [helloBytes]byte, wanted protocol) error {
	if heard == hello(wanted) {
		return nil
	}
	name := map[protocol]string{protocolRep: "REP", protocolPub: "PUB"}[wanted]
	return fmt.Errorf("the server is not a %s socket", name)
}

func randomUint32() uint32 {
	var bytes [4]byte
	_, _ = rand.Read(bytes[:]) // never fails; crypto/rand ends the process instead
	return binary.NativeEndian.Uint32(bytes[:])
}
