// A client with nothing of ours but the contract: mangos' REQ and SUB sockets, on a real tined.
//
//	mangos BUILD_DIRECTORY DESCRIPTOR_SET
//
// Ends with the line `N passed, N failed`.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"go.nanomsg.org/mangos/v3"
	"go.nanomsg.org/mangos/v3/protocol/req"
	"go.nanomsg.org/mangos/v3/protocol/sub"
	_ "go.nanomsg.org/mangos/v3/transport/ipc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

var (
	build     string
	directory string
	contract  *protoregistry.Files
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func message(name string) *dynamicpb.Message {
	found, err := contract.FindDescriptorByName(protoreflect.FullName("tine.v1." + name))
	must(err)
	return dynamicpb.NewMessage(found.(protoreflect.MessageDescriptor))
}

func fromJSON(name, text string) proto.Message {
	made := message(name)
	must(protojson.Unmarshal([]byte(text), made))
	return made
}

func field(m proto.Message, path string) protoreflect.Value {
	var value protoreflect.Value
	at := m.ProtoReflect()
	for _, name := range strings.Split(path, ".") {
		described := at.Descriptor().Fields().ByName(protoreflect.Name(name))
		value = at.Get(described)
		if described.Message() != nil && !described.IsList() {
			at = value.Message()
		}
	}
	return value
}

func dial(url string) mangos.Socket {
	socket, err := req.NewSocket()
	must(err)
	must(socket.SetOption(mangos.OptionRecvDeadline, 30*time.Second))
	must(socket.DialOptions(url, map[string]any{mangos.OptionDialAsynch: true}))
	return socket
}

// call sends a Request and returns its Response.
func call(socket mangos.Socket, method, operationID, request string) proto.Message {
	// Deterministic, for one operation_id stands for one encoding.
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(fromJSON(method+"Request", request))
	must(err)
	envelope := message("Request").ProtoReflect()
	set := func(name string, value any) {
		envelope.Set(envelope.Descriptor().Fields().ByName(protoreflect.Name(name)), protoreflect.ValueOf(value))
	}
	set("method", "/tine.v1.StoreService/"+method)
	set("operation_id", operationID)
	set("body", body)
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(envelope.Interface())
	must(err)
	must(socket.Send(encoded))
	reply, err := socket.Recv()
	must(err)
	response := message("Response")
	must(proto.Unmarshal(reply, response))
	return response
}

func callOK(socket mangos.Socket, method, operationID, request string) proto.Message {
	response := call(socket, method, operationID, request)
	if code := field(response, "status.code").Int(); code != 0 {
		panic(fmt.Sprintf("%s: %d %s", method, code, field(response, "status.message")))
	}
	reply := message(method + "Response")
	must(proto.Unmarshal(field(response, "body").Bytes(), reply))
	return reply
}

func create(socket mangos.Socket) string {
	reply := callOK(socket, "CreateSession", "", `{"session": {"projectDir": "/p", "model": {"provider": "p", "name": "m"}}}`)
	return field(reply, "session.id").String()
}

func appendTo(socket mangos.Socket, session, operationID string) string {
	reply := callOK(socket, "AppendMessage", operationID,
		fmt.Sprintf(`{"sessionId": %q, "message": {"role": "ROLE_USER", "parts": [{"text": {"text": "Hello."}}]}}`, session))
	return field(reply, "receipt.id").String()
}

func count(socket mangos.Socket, session string) uint64 {
	reply := callOK(socket, "GetSession", "", fmt.Sprintf(`{"sessionId": %q}`, session))
	return field(reply, "session.message_count").Uint()
}

// start runs a program of the build until the returned function is called.
func start(program, socket string, arguments ...string) func() {
	command := exec.Command(filepath.Join(build, program), append([]string{"--socket", socket}, arguments...)...)
	must(command.Start())
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			break
		}
	}
	return func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}
}

func equal[T comparable](got, wanted T) {
	if got != wanted {
		panic(fmt.Sprintf("%v instead of %v", got, wanted))
	}
}

func callsAreAnswered(url string) {
	socket := dial(url)
	defer socket.Close()
	session := create(socket)
	equal(count(socket, session), 0)
	appendTo(socket, session, "")
	equal(count(socket, session), 1)
}

func errorsAreStatuses(url string) {
	socket := dial(url)
	defer socket.Close()
	response := call(socket, "GetSession", "", `{"sessionId": "00000000000000000000000001"}`)
	equal(field(response, "status.code").Int(), 5)
	equal(field(response, "status.reason").String(), "SESSION_NOT_FOUND")
}

func anOperationIsDoneOnce(url string) {
	socket := dial(url)
	defer socket.Close()
	session := create(socket)
	first := appendTo(socket, session, "mangos-1")
	equal(appendTo(socket, session, "mangos-1"), first)
	equal(count(socket, session), 1)
}

// throughProxy appends through a proxy that loses the first two replies or requests. When a
// connection ends mangos sends again by itself; when a reply is lost, after its retry time.
func throughProxy(mode string) func(string) {
	return func(url string) {
		direct := dial(url)
		defer direct.Close()
		session := create(direct)
		path := filepath.Join(directory, mode)
		defer start("tests/wire_proxy", path, "--to", strings.TrimPrefix(url, "ipc://"), "--mode", mode, "--count", "2")()
		socket := dial("ipc://" + path)
		defer socket.Close()
		if mode == "drop-reply" {
			must(socket.SetOption(mangos.OptionRetryTime, 100*time.Millisecond))
		}
		appendTo(socket, session, "mangos-"+mode)
		equal(count(direct, session), 1)
	}
}

func theBusIsHeard(url string) {
	requests := dial(url)
	defer requests.Close()
	mine, other := create(requests), create(requests)
	events, err := sub.NewSocket()
	must(err)
	defer events.Close()
	must(events.SetOption(mangos.OptionRecvDeadline, 30*time.Second))
	must(events.SetOption(mangos.OptionSubscribe, []byte("session/"+mine+"/")))
	must(events.SetOption(mangos.OptionSubscribe, []byte("heartbeat")))
	must(events.Dial(strings.TrimSuffix(url, ".sock") + ".events"))
	receive := func() (string, proto.Message) {
		received, err := events.Recv()
		must(err)
		topic, encoded, found := bytes.Cut(received, []byte{0})
		equal(found, true)
		event := message("Event")
		must(proto.Unmarshal(encoded, event))
		return string(topic), event
	}
	topic, _ := receive()
	equal(topic, "heartbeat")
	appendTo(requests, other, "")
	id := appendTo(requests, mine, "")
	for topic == "heartbeat" {
		var event proto.Message
		topic, event = receive()
		if topic != "heartbeat" {
			equal(topic, "session/"+mine+"/message.appended")
			equal(field(event, "message_id").String(), id)
		}
	}
}

func main() {
	build = os.Args[1]
	encoded, err := os.ReadFile(os.Args[2])
	must(err)
	var set descriptorpb.FileDescriptorSet
	must(proto.Unmarshal(encoded, &set))
	contract, err = protodesc.NewFiles(&set)
	must(err)
	directory, err = os.MkdirTemp("", "tine-mangos-")
	must(err)
	failed := runAll()
	_ = os.RemoveAll(directory)
	if failed > 0 {
		os.Exit(1)
	}
}

func runAll() (failed int) {
	socket := filepath.Join(directory, "tine.sock")
	defer start("server/tined", socket, "--ephemeral")()

	tests := []struct {
		name string
		run  func(url string)
	}{
		{"calls are answered", callsAreAnswered},
		{"errors are statuses", errorsAreStatuses},
		{"an operation is done once", anOperationIsDoneOnce},
		{"what is sent again after a lost reply is done once", throughProxy("drop-reply")},
		{"what is sent again after a cut reply is done once", throughProxy("cut-reply")},
		{"what is sent again after a cut request is done once", throughProxy("cut-request")},
		{"the bus is heard", theBusIsHeard},
	}
	for _, test := range tests {
		func() {
			defer func() {
				if why := recover(); why != nil {
					failed++
					fmt.Printf("FAILED %s: %v\n", test.name, why)
				}
			}()
			test.run("ipc://" + socket)
		}()
	}
	fmt.Printf("%d passed, %d failed\n", len(tests)-failed, failed)
	return failed
}
