// Agent is an example: one turn of a small agent. It appends the user's message, lets a subagent
// read files with tools in parallel while its entry is open, adds up the costs, forks the
// conversation, and prints the events that other clients would see. The model is a few lines of
// this program.
//
//	go run ./examples/agent [--url ipc://SOCKET] [--start] [FILE...]
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	tine "github.com/tine-store/tine/client/go"
	"github.com/tine-store/tine/client/go/tinev1"
)

var model = &tinev1.ModelRef{Provider: "example", Name: "counts-lines"}

// agent is a session and its store.
type agent struct {
	store   tinev1.StoreServiceClient
	session string
}

func main() {
	log.SetFlags(0)
	url := flag.String("url", "", "tined's URL; empty: where it listens by itself")
	start := flag.Bool("start", false, "start tined if none runs")
	flag.Parse()
	files := flag.Args()
	if len(files) == 0 {
		files = []string{"go.mod", "go.sum", "nowhere.txt"}
	}
	// A write that is sent again carries the same operation id, so it happens once.
	opts := []tine.Option{tine.WithRetry(10 * time.Second)}
	if *start {
		opts = append(opts, tine.WithStart())
	}
	client, err := tine.Dial(*url, opts...)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if err := run(context.Background(), tinev1.NewStoreServiceClient(client), files); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, store tinev1.StoreServiceClient, files []string) error {
	main, err := begin(ctx, store, &tinev1.NewSession{Slug: "how-long", Title: "How long are they?"})
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	events, err := store.WatchEvents(watching, &tinev1.WatchEventsRequest{})
	if err != nil {
		return err
	}
	question, err := main.say(ctx, tinev1.Role_ROLE_USER, "How long are these files?", nil)
	if err != nil {
		return err
	}
	helper, err := begin(ctx, store, &tinev1.NewSession{
		Kind: tinev1.SessionKind_SESSION_KIND_SUBAGENT, ParentId: main.session, Title: "Reads files",
	})
	if err != nil {
		return err
	}
	answer, err := helper.readFiles(ctx, files)
	if err != nil {
		return err
	}
	last, err := main.say(ctx, tinev1.Role_ROLE_ASSISTANT, answer,
		&tinev1.Usage{InputTokens: 40, OutputTokens: 12, CostNanoUsd: 90_000})
	if err != nil {
		return err
	}
	fork, err := store.ForkSession(ctx, &tinev1.ForkSessionRequest{
		SessionId: main.session,
		ForkPoint: &tinev1.ForkSessionRequest_ThroughMessageId{ThroughMessageId: question},
		Slug:      "how-long-again",
	})
	if err != nil {
		return err
	}
	if err := show(ctx, main, answer, fork.Session); err != nil {
		return err
	}
	return printUntil(events, last)
}

// begin creates a session.
func begin(ctx context.Context, store tinev1.StoreServiceClient, session *tinev1.NewSession) (*agent, error) {
	directory, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	session.ProjectDir, session.Model = directory, model
	request := &tinev1.CreateSessionRequest{Session: session}
	if session.Slug != "" {
		request.SlugPolicy = tinev1.SlugPolicy_SLUG_POLICY_UNIQUE_SUFFIX
	}
	reply, err := store.CreateSession(ctx, request)
	if err != nil {
		return nil, err
	}
	return &agent{store, reply.Session.Id}, nil
}

// say appends a message and adds its usage to all ancestors in the same transaction.
func (a *agent) say(ctx context.Context, role tinev1.Role, text string, usage *tinev1.Usage) (string, error) {
	reply, err := a.store.AppendMessage(ctx, &tinev1.AppendMessageRequest{
		SessionId: a.session,
		Message: &tinev1.NewMessage{
			Role:  role,
			Usage: usage,
			Parts: []*tinev1.Part{{Kind: &tinev1.Part_Text{Text: &tinev1.Text{Text: text}}}},
		},
		PropagateUsage: usage != nil,
	})
	if err != nil {
		return "", err
	}
	return reply.Receipt.Id, nil
}

// readFiles is the subagent's turn: one open entry with a tool use for each file, all in parallel.
func (a *agent) readFiles(ctx context.Context, files []string) (string, error) {
	opened, err := a.store.AppendMessage(ctx, &tinev1.AppendMessageRequest{
		SessionId: a.session,
		Message: &tinev1.NewMessage{
			Role:   tinev1.Role_ROLE_ASSISTANT,
			Status: tinev1.MessageStatus_MESSAGE_STATUS_OPEN,
		},
	})
	if err != nil {
		return "", err
	}
	entry := opened.Receipt.Id
	lines, failures := make([]int, len(files)), make([]error, len(files))
	var tools sync.WaitGroup
	for i, file := range files {
		tools.Add(1)
		go func() {
			defer tools.Done()
			lines[i], failures[i] = a.useTool(ctx, entry, fmt.Sprintf("use-%d", i), file)
		}()
	}
	tools.Wait()
	answer := ""
	for i, file := range files {
		if failures[i] != nil {
			return "", failures[i]
		}
		answer += fmt.Sprintf("%s: %d lines. ", file, lines[i])
	}
	_, err = a.store.SealMessage(ctx, &tinev1.SealMessageRequest{
		MessageId:      entry,
		Status:         tinev1.MessageStatus_MESSAGE_STATUS_COMPLETE,
		FinishReason:   "tool_use",
		Usage:          &tinev1.Usage{InputTokens: 100, OutputTokens: 30, CostNanoUsd: 210_000},
		PropagateUsage: true,
	})
	return answer, err
}

// useTool counts a file's lines. The tool use is replaced when it completes, and its result is
// appended.
func (a *agent) useTool(ctx context.Context, entry, use, file string) (int, error) {
	tool := &tinev1.ToolUse{
		Id:    use,
		Name:  "count_lines",
		Input: &tinev1.ToolUse_InputJson{InputJson: fmt.Sprintf(`{"file": %q}`, file)},
		State: tinev1.ToolState_TOOL_STATE_RUNNING,
	}
	part := &tinev1.Part{Kind: &tinev1.Part_ToolUse{ToolUse: tool}}
	receipt, err := a.put(ctx, entry, part)
	if err != nil {
		return 0, err
	}
	part.Id = receipt.PartIds[len(receipt.PartIds)-1]

	lines := 0
	text, failure := os.ReadFile(file)
	for _, character := range text {
		if character == '\n' {
			lines++
		}
	}
	result := &tinev1.ToolResult{ToolUseId: use, ToolName: tool.Name, Content: fmt.Sprint(lines)}
	tool.State = tinev1.ToolState_TOOL_STATE_COMPLETED
	if failure != nil {
		tool.State = tinev1.ToolState_TOOL_STATE_ERROR
		result.IsError, result.Content = true, failure.Error()
	}
	if _, err := a.put(ctx, entry, part); err != nil {
		return 0, err
	}
	_, err = a.put(ctx, entry, &tinev1.Part{Kind: &tinev1.Part_ToolResult{ToolResult: result}})
	return lines, err
}

func (a *agent) put(ctx context.Context, entry string, part *tinev1.Part) (*tinev1.Receipt, error) {
	reply, err := a.store.AppendPart(ctx, &tinev1.AppendPartRequest{MessageId: entry, Part: part})
	if err != nil {
		return nil, err
	}
	return reply.Receipt, nil
}

func show(ctx context.Context, main *agent, answer string, fork *tinev1.Session) error {
	reply, err := main.store.GetSession(ctx, &tinev1.GetSessionRequest{SessionId: main.session})
	if err != nil {
		return err
	}
	totals := reply.Session.Totals
	fmt.Printf("%s\n%d tokens in, %d out, %d nano-USD with the helper's\n", answer,
		totals.InputTokens, totals.OutputTokens, totals.CostNanoUsd)
	context, err := main.store.BuildContext(ctx, &tinev1.BuildContextRequest{SessionId: fork.Id})
	if err != nil {
		return err
	}
	fmt.Printf("the fork %s goes on after %d message(s)\n", fork.Slug, len(context.Messages))
	return nil
}

// printUntil prints events up to and including the one of a message.
func printUntil(events interface {
	Recv() (*tinev1.WatchEventsResponse, error)
}, message string,
) error {
	for {
		received, err := events.Recv()
		if err != nil {
			return err
		}
		fmt.Printf("event %d %s\n", received.Event.Sequence, received.Event.Type)
		if received.Event.MessageId == message {
			return nil
		}
	}
}
