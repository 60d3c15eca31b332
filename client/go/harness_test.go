package tine

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tine-store/tine/client/go/tinetest"
	"github.com/tine-store/tine/client/go/tinev1"
)

// limit is how long a test waits for an event before it fails.
const limit = 60 * time.Second

// built returns the path of a program from the C build tree.
func built(t testing.TB, name ...string) string {
	t.Helper()
	directory := os.Getenv("TINE_BUILD")
	if directory == "" {
		directory = filepath.Join(repository, "build", "release")
	}
	path, err := filepath.Abs(filepath.Join(append([]string{directory}, name...)...))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v; build it first, $TINE_BUILD says where", err)
	}
	return path
}

// scratch makes a directory with a path that is short enough for sockets.
func scratch(t testing.TB) string {
	t.Helper()
	directory, err := os.MkdirTemp("", "tine-go-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(directory) })
	return directory
}

// eventually waits until a condition is true.
func eventually(t testing.TB, what string, isTrue func() bool) {
	t.Helper()
	for until := time.Now().Add(limit); !isTrue(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("not seen: %s", what)
		}
	}
}

// startDaemon starts the tined of the C build tree with a store of its own.
func startDaemon(t testing.TB, arguments ...string) *tinetest.Daemon {
	t.Helper()
	return tinetest.Start(t, tinetest.WithTined(built(t, "server", "tined")),
		tinetest.WithArguments(arguments...))
}

func stub(client *Client) tinev1.StoreServiceClient {
	return tinev1.NewStoreServiceClient(client)
}

// dial makes a client that is closed when the test ends.
func dial(t testing.TB, url string, opts ...Option) *Client {
	t.Helper()
	client, err := Dial(url, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// within returns a context that ends after limit.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

func createSession(t testing.TB, client *Client) string {
	t.Helper()
	reply, err := stub(client).CreateSession(within(t), &tinev1.CreateSessionRequest{
		Session: &tinev1.NewSession{
			ProjectDir: "/work",
			Model:      &tinev1.ModelRef{Provider: "anthropic", Name: "claude-sonnet-4"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return reply.Session.Id
}

func userMessage(session, text string) *tinev1.AppendMessageRequest {
	return &tinev1.AppendMessageRequest{
		SessionId: session,
		Message: &tinev1.NewMessage{
			Role: tinev1.Role_ROLE_USER,
			Parts: []*tinev1.Part{
				{Kind: &tinev1.Part_Text{Text: &tinev1.Text{Text: text}}},
			},
		},
	}
}

func appendUser(t testing.TB, client *Client, session, text string) *tinev1.Receipt {
	t.Helper()
	reply, err := stub(client).AppendMessage(within(t), userMessage(session, text))
	if err != nil {
		t.Fatal(err)
	}
	return reply.Receipt
}

// history returns the texts of a session, page by page.
func history(t testing.TB, client *Client, session string) []string {
	t.Helper()
	var texts []string
	request := &tinev1.MessagesForSessionRequest{SessionId: session}
	for {
		page, err := stub(client).MessagesForSession(within(t), request)
		if err != nil {
			t.Fatal(err)
		}
		for _, message := range page.Messages {
			texts = append(texts, message.Parts[0].GetText().GetText())
		}
		if request.Cursor = page.NextCursor; request.Cursor == "" {
			return texts
		}
	}
}

// wantStatus checks how a call failed.
func wantStatus(t testing.TB, err error, code codes.Code, reason Reason) {
	t.Helper()
	if status.Code(err) != code || ReasonOf(err) != reason {
		t.Fatalf("%v, reason %q; wanted %s, %q", err, ReasonOf(err), code, reason)
	}
}

// checkLeaks fails the test if run leaves goroutines or descriptors behind.
func checkLeaks(t *testing.T, run func()) {
	t.Helper()
	goroutines, descriptors := runtime.NumGoroutine(), openFiles(t)
	run()
	eventuallyFew := func(what string, before int, now func() int) {
		t.Helper()
		for until := time.Now().Add(limit); now() > before; time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				stacks := make([]byte, 1<<20)
				stacks = stacks[:runtime.Stack(stacks, true)]
				t.Fatalf("%d %s, before %d\n%s", now(), what, before, stacks)
			}
		}
	}
	eventuallyFew("goroutines", goroutines, runtime.NumGoroutine)
	eventuallyFew("descriptors", descriptors, func() int { return openFiles(t) })
}

func openFiles(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// startPeer starts tests/wire_peer in a mode.
func startPeer(t *testing.T, mode string) (url string) {
	t.Helper()
	socket := filepath.Join(scratch(t), "peer.sock")
	process := exec.Command(built(t, "tests", "wire_peer"), "--socket", socket, "--mode", mode)
	output, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != "ready" {
		t.Fatalf("wire_peer said %q: %v", line, err)
	}
	return schemeIPC + socket
}

// server is a server in this process. The test decides what it replies.
type server struct {
	t        testing.TB
	listener net.Listener
	answer   func(*serverCall)
	calls    sync.WaitGroup

	mutex       sync.Mutex
	connections []net.Conn
	requests    []*tinev1.Request
}

// serverCall is one request that was received.
type serverCall struct {
	server     *server
	connection net.Conn
	writing    *sync.Mutex
	id         []byte
	number     int // from 0, over all connections
	request    *tinev1.Request
}

// serve starts a server that calls answer for each request, on a goroutine of its own.
func serve(t testing.TB, answer func(*serverCall)) *server {
	t.Helper()
	return serveAt(t, filepath.Join(scratch(t), "s.sock"), answer)
}

func serveAt(t testing.TB, socket string, answer func(*serverCall)) *server {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, listener: listener, answer: answer}
	s.calls.Add(1)
	go s.accept()
	t.Cleanup(s.close)
	return s
}

func (s *server) url() string { return schemeIPC + s.listener.Addr().String() }

func (s *server) close() {
	s.listener.Close()
	s.hangUp()
	s.calls.Wait()
}

// hangUp closes all connections.
func (s *server) hangUp() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, connection := range s.connections {
		connection.Close()
	}
}

// count returns how many connections and requests there have been.
func (s *server) count() (connections, requests int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.connections), len(s.requests)
}

func (s *server) request(number int) *tinev1.Request {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.requests[number]
}

func (s *server) accept() {
	defer s.calls.Done()
	for {
		connection, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mutex.Lock()
		s.connections = append(s.connections, connection)
		s.mutex.Unlock()
		s.calls.Add(1)
		go s.read(connection)
	}
}

func (s *server) read(connection net.Conn) {
	defer s.calls.Done()
	defer connection.Close()
	said := hello(protocolRep)
	var heard [helloBytes]byte
	if _, err := connection.Write(said[:]); err != nil {
		return
	}
	if _, err := io.ReadFull(connection, heard[:]); err != nil || checkHello(heard, protocolReq) != nil {
		return
	}
	writing := new(sync.Mutex)
	in := inbox{transport: transportIPC}
	for {
		payload, _, err := in.next()
		if err != nil {
			return
		}
		if payload != nil {
			s.take(connection, writing, payload)
			continue
		}
		count, err := connection.Read(in.space())
		if err != nil {
			return
		}
		in.took(count)
	}
}

func (s *server) take(connection net.Conn, writing *sync.Mutex, payload []byte) {
	request := new(tinev1.Request)
	if err := proto.Unmarshal(payload[idBytes:], request); err != nil {
		s.t.Errorf("the client sent %x: %v", payload, err)
		return
	}
	s.mutex.Lock()
	number := len(s.requests)
	s.requests = append(s.requests, request)
	s.mutex.Unlock()
	call := &serverCall{s, connection, writing, append([]byte{}, payload[:idBytes]...), number, request}
	s.calls.Add(1)
	go func() {
		defer s.calls.Done()
		s.answer(call)
	}()
}

// reply answers a request. Requests may be answered in any order.
func (c *serverCall) reply(response *tinev1.Response) {
	body, err := proto.Marshal(response)
	if err != nil {
		c.server.t.Error(err)
	}
	frame := make([]byte, transportIPC.headerBytes())
	transportIPC.putHeader(frame, idBytes+len(body))
	frame = append(append(frame, c.id...), body...)
	c.writing.Lock()
	defer c.writing.Unlock()
	_, _ = c.connection.Write(frame)
}

// ok answers with success.
func (c *serverCall) ok() { c.reply(&tinev1.Response{Status: &tinev1.Status{}}) }

func health(ctx context.Context, client *Client) error {
	_, err := stub(client).Health(ctx, &tinev1.HealthRequest{})
	return err
}

// invokePatiently makes a call that waits until the server can be connected to.
func invokePatiently(t *testing.T, client *Client) {
	t.Helper()
	err := client.Invoke(within(t), tinev1.StoreService_Health_FullMethodName,
		&tinev1.HealthRequest{}, &tinev1.HealthResponse{}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
}

func TestMain(m *testing.M) {
	// Only variables that a test sets count.
	for _, name := range []string{"TINE_SOCKET", "TINE_URL", "XDG_RUNTIME_DIR", "TINED"} {
		if err := os.Unsetenv(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}
