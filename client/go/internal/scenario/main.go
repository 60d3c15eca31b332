// Scenario runs the steps of tests/wire/scenario.json through the generated stub and prints a
// transcript with one line for each step. tests/wire/transcripts compares the transcripts of all
// languages.
//
//	client/go/scenario --url ipc://SOCKET --peer ipc://SOCKET scenario.json
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	tine "github.com/tine-store/tine/client/go"
	"github.com/tine-store/tine/client/go/tinev1"
)

const watchWait = 20 * time.Second

type step struct {
	ID          string            `json:"id"`
	Call        string            `json:"call"`
	Request     json.RawMessage   `json:"request"`
	Save        map[string]string `json:"save"`
	OperationID *string           `json:"operation_id"`
	Traceparent string            `json:"traceparent"`
	TimeoutMS   int64             `json:"timeout_ms"`
	Token       string            `json:"token"`
	Via         string            `json:"via"`
	CancelMS    int64             `json:"cancel_ms"`
	Watch       *struct {
		Events int `json:"events"`
	} `json:"watch"`
	Repeat *struct {
		Name  string `json:"name"`
		Count int    `json:"count"`
	} `json:"repeat"`
	Generate *struct {
		Field string `json:"field"`
		Byte  string `json:"byte"`
		Count int    `json:"count"`
	} `json:"generate"`
}

// line is one line of the transcript.
type line struct {
	Step    string          `json:"step"`
	Call    string          `json:"call"`
	Code    codes.Code      `json:"code"`
	Reason  tine.Reason     `json:"reason"`
	Message string          `json:"message"`
	Reply   json.RawMessage `json:"reply"`
}

// runner holds the clients and the saved values.
type runner struct {
	stubs map[string]tinev1.StoreServiceClient // by `via`
	saved map[string]string
	out   *json.Encoder
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("scenario: ")
	url := flag.String("url", "", "tined's URL")
	peer := flag.String("peer", "", "wire_peer's URL")
	flag.Parse()
	text, err := os.ReadFile(flag.Arg(0))
	if err != nil {
		log.Fatal(err)
	}
	var steps []step
	if err := json.Unmarshal(text, &steps); err != nil {
		log.Fatal(err)
	}
	r := runner{stubs: map[string]tinev1.StoreServiceClient{}, saved: map[string]string{}}
	r.out = json.NewEncoder(os.Stdout)
	r.out.SetEscapeHTML(false)
	for via, url := range map[string]string{"": *url, "peer": *peer} {
		client, err := tine.Dial(url)
		if err != nil {
			log.Fatal(err)
		}
		defer client.Close()
		r.stubs[via] = tinev1.NewStoreServiceClient(client)
	}
	for _, s := range steps {
		if err := r.run(&s); err != nil {
			log.Fatalf("%s: %v", s.ID, err)
		}
	}
}

func (r *runner) run(s *step) error {
	if s.Repeat == nil {
		return r.runOnce(s, s.ID)
	}
	for i := range s.Repeat.Count {
		r.saved[s.Repeat.Name] = strconv.Itoa(i)
		if err := r.runOnce(s, fmt.Sprintf("%s/%d", s.ID, i)); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) runOnce(s *step, id string) error {
	request, err := r.request(s)
	if err != nil {
		return err
	}
	ctx, cancel := r.context(s)
	defer cancel()
	reply, err := r.call(ctx, s, request)
	out := line{Step: id, Call: s.Call, Code: status.Code(err)}
	if err != nil {
		out.Reason, out.Message = tine.ReasonOf(err), status.Convert(err).Message()
		return r.out.Encode(out)
	}
	out.Reply = reply
	if err := r.save(s, reply); err != nil {
		return err
	}
	return r.out.Encode(out)
}

var placeholder = regexp.MustCompile(`\$\{[^}]*\}`)

// expand replaces the names of saved values.
func (r *runner) expand(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(name string) string {
		return r.saved[name[2:len(name)-1]]
	})
}

func (r *runner) expandAll(value any) any {
	switch value := value.(type) {
	case string:
		return r.expand(value)
	case []any:
		for i := range value {
			value[i] = r.expandAll(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = r.expandAll(value[key])
		}
	}
	return value
}

// method returns the stub's method for a step.
func (r *runner) method(s *step) (reflect.Value, error) {
	method := reflect.ValueOf(r.stubs[s.Via]).MethodByName(s.Call)
	if !method.IsValid() {
		return method, fmt.Errorf("there is no call %s", s.Call)
	}
	return method, nil
}

func (r *runner) request(s *step) (proto.Message, error) {
	method, err := r.method(s)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(s.Request))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	value = r.expandAll(value)
	if g := s.Generate; g != nil {
		if err := put(value, strings.Split(g.Field, "."), strings.Repeat(g.Byte, g.Count)); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	request := reflect.New(method.Type().In(1).Elem()).Interface().(proto.Message)
	return request, protojson.Unmarshal(text, request)
}

// find returns the value at a path of names and indexes.
func find(value any, path []string) (any, error) {
	for _, name := range path {
		switch inner := value.(type) {
		case map[string]any:
			value = inner[name]
		case []any:
			index, err := strconv.Atoi(name)
			if err != nil || index >= len(inner) {
				return nil, fmt.Errorf("there is no %s in %v", name, path)
			}
			value = inner[index]
		default:
			return nil, fmt.Errorf("there is no %s in %v", name, path)
		}
	}
	return value, nil
}

func put(value any, path []string, text string) error {
	last := len(path) - 1
	inner, err := find(value, path[:last])
	if err != nil {
		return err
	}
	switch inner := inner.(type) {
	case map[string]any:
		inner[path[last]] = text
	case []any:
		index, err := strconv.Atoi(path[last])
		if err != nil || index >= len(inner) {
			return fmt.Errorf("there is no place %v", path)
		}
		inner[index] = text
	default:
		return fmt.Errorf("there is no place %v", path)
	}
	return nil
}

func (r *runner) context(s *step) (context.Context, context.CancelFunc) {
	ctx := context.Background()
	if s.OperationID != nil {
		ctx = tine.WithOperationID(ctx, r.expand(*s.OperationID))
	}
	if s.Traceparent != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "traceparent", s.Traceparent)
	}
	if s.Token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "tine-token", s.Token)
	}
	timeout := time.Duration(s.TimeoutMS) * time.Millisecond
	if s.Watch != nil && timeout == 0 {
		timeout = watchWait
	}
	if timeout > 0 {
		return context.WithTimeout(ctx, timeout)
	}
	ctx, cancel := context.WithCancel(ctx)
	if s.CancelMS > 0 {
		time.AfterFunc(time.Duration(s.CancelMS)*time.Millisecond, cancel)
	}
	return ctx, cancel
}

func (r *runner) call(ctx context.Context, s *step, request proto.Message) (json.RawMessage, error) {
	if s.Watch != nil {
		return r.watch(ctx, s, request.(*tinev1.WatchEventsRequest))
	}
	method, err := r.method(s)
	if err != nil {
		return nil, err
	}
	results := method.Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(request)})
	if err, _ := results[1].Interface().(error); err != nil {
		return nil, err
	}
	return protojson.Marshal(results[0].Interface().(proto.Message))
}

func (r *runner) watch(
	ctx context.Context, s *step, request *tinev1.WatchEventsRequest,
) (json.RawMessage, error) {
	stream, err := r.stubs[s.Via].WatchEvents(ctx, request)
	if err != nil {
		return nil, err
	}
	var reply struct {
		Events []json.RawMessage `json:"events"`
	}
	for range s.Watch.Events {
		received, err := stream.Recv()
		if err != nil {
			return nil, err
		}
		text, err := protojson.Marshal(received.Event)
		if err != nil {
			return nil, err
		}
		reply.Events = append(reply.Events, text)
	}
	return json.Marshal(reply)
}

func (r *runner) save(s *step, reply json.RawMessage) error {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(reply))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return err
	}
	for name, path := range s.Save {
		found, err := find(value, strings.Split(path, "."))
		if err != nil {
			return err
		}
		if found == nil {
			found = ""
		}
		r.saved[name] = fmt.Sprint(found)
	}
	return nil
}
