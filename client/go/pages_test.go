package tine

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/tine-store/tine/client/go/tinev1"
)

// collect returns the names of the items of a sequence.
func collect[T any](t *testing.T, sequence iter.Seq2[T, error], name func(T) string) []string {
	t.Helper()
	names := []string{}
	for item, err := range sequence {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name(item))
	}
	return names
}

// listings makes each listing call and returns what it listed. SummarizeCost, which has no limit,
// gets pageBytes.
func listings(
	t *testing.T, client *Client, session string, limit, pageBytes uint32,
) map[string][]string {
	store, ctx := stub(client), within(t)
	id := (*tinev1.Message).GetId
	return map[string][]string{
		"ListSessions": collect(t, All(ctx, store.ListSessions,
			&tinev1.ListSessionsRequest{Limit: limit},
			(*tinev1.ListSessionsResponse).GetSessions), (*tinev1.Session).GetId),
		"MessagesForSession": collect(t, All(ctx, store.MessagesForSession,
			&tinev1.MessagesForSessionRequest{SessionId: session, Limit: limit},
			(*tinev1.MessagesForSessionResponse).GetMessages), id),
		"MessagesDirectForSession": collect(t, All(ctx, store.MessagesDirectForSession,
			&tinev1.MessagesDirectForSessionRequest{SessionId: session, Limit: limit},
			(*tinev1.MessagesDirectForSessionResponse).GetMessages), id),
		"MessagesSinceLatestMarker": collect(t, All(ctx, store.MessagesSinceLatestMarker,
			&tinev1.MessagesSinceLatestMarkerRequest{SessionId: session, Limit: limit},
			(*tinev1.MessagesSinceLatestMarkerResponse).GetMessages), id),
		"ListMarkersForSession": collect(t, All(ctx, store.ListMarkersForSession,
			&tinev1.ListMarkersForSessionRequest{SessionId: session, Limit: limit},
			(*tinev1.ListMarkersForSessionResponse).GetEntries), id),
		"ListSessionMemories": collect(t, All(ctx, store.ListSessionMemories,
			&tinev1.ListSessionMemoriesRequest{SessionId: session, Limit: limit},
			(*tinev1.ListSessionMemoriesResponse).GetMemories), (*tinev1.Memory).GetId),
		"ListMessages": collect(t, All(ctx, store.ListMessages,
			&tinev1.ListMessagesRequest{SessionId: session, Limit: limit},
			(*tinev1.ListMessagesResponse).GetMessages), id),
		"ListParts": collect(t, All(ctx, store.ListParts,
			&tinev1.ListPartsRequest{SessionId: session, Limit: limit},
			(*tinev1.ListPartsResponse).GetParts), (*tinev1.FoundPart).GetMessageId),
		"ListOriginals": collect(t, All(ctx, store.ListOriginals,
			&tinev1.ListOriginalsRequest{SessionId: session, Limit: limit},
			(*tinev1.ListOriginalsResponse).GetOriginals), (*tinev1.Original).GetMessageId),
		"BuildContext": collect(t, All(ctx, store.BuildContext,
			&tinev1.BuildContextRequest{SessionId: session, Limit: limit},
			(*tinev1.BuildContextResponse).GetMessages), id),
		"ListCalls": collect(t, All(ctx, store.ListCalls,
			&tinev1.ListCallsRequest{SessionId: session, Limit: limit},
			(*tinev1.ListCallsResponse).GetCalls), (*tinev1.Call).GetId),
		"SummarizeCost": collect(t, All(ctx, store.SummarizeCost,
			&tinev1.SummarizeCostRequest{By: tinev1.CostGroup_COST_GROUP_MODEL, PageBytes: pageBytes},
			(*tinev1.SummarizeCostResponse).GetRows),
			func(row *tinev1.CostSum) string { return row.Model.Name }),
		"ListEvents": collect(t, All(ctx, store.ListEvents,
			&tinev1.ListEventsRequest{Limit: limit},
			(*tinev1.ListEventsResponse).GetEvents),
			func(event *tinev1.Event) string { return fmt.Sprint(event.Sequence) }),
	}
}

// fillListings stores several records of each kind that is listed.
func fillListings(t *testing.T, client *Client) (session string) {
	t.Helper()
	store, ctx := stub(client), within(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 7 {
		session = createSession(t, client)
		_, err := store.RecordCall(ctx, &tinev1.RecordCallRequest{
			SessionId: session,
			Call: &tinev1.NewCall{
				Requested: &tinev1.ModelRef{Provider: "anthropic", Name: fmt.Sprint("model-", i)},
			},
		})
		must(err)
	}
	for i := range 7 {
		_, err := store.RecordCall(ctx, &tinev1.RecordCallRequest{
			SessionId: session,
			Call: &tinev1.NewCall{
				Requested: &tinev1.ModelRef{Provider: "anthropic", Name: fmt.Sprint("other-", i)},
			},
		})
		must(err)
		_, err = store.AddCompactionMarker(ctx, &tinev1.AddCompactionMarkerRequest{
			SessionId: session,
			Marker:    &tinev1.Marker{Summary: "all of it", KeepAll: true},
		})
		must(err)
		_, err = store.RememberSessionMemory(ctx, &tinev1.RememberSessionMemoryRequest{
			SessionId: session,
			Memory: &tinev1.NewMemory{
				Content: fmt.Sprint("fact ", i), Scope: tinev1.MemoryScope_MEMORY_SCOPE_SESSION,
			},
		})
		must(err)
		message := userMessage(session, "Where do we begin?")
		message.Message.Parts = append(message.Message.Parts, &tinev1.Part{
			Kind: &tinev1.Part_ToolUse{ToolUse: &tinev1.ToolUse{
				Id: fmt.Sprint("use-", i), Name: "read",
				Input: &tinev1.ToolUse_InputJson{InputJson: "{}"},
			}},
		})
		appended, err := store.AppendMessage(ctx, message)
		must(err)
		_, err = store.PutOriginal(ctx, &tinev1.PutOriginalRequest{
			MessageId: appended.Receipt.Id, Content: []byte("as it was"),
		})
		must(err)
	}
	return session
}

func TestEachListingCallIsPagedToItsEnd(t *testing.T) {
	client := dial(t, startDaemon(t, "--ephemeral").URL())
	session := fillListings(t, client)
	whole := listings(t, client, session, 1000, 16<<20)
	paged := listings(t, client, session, 3, 1) // a page of a byte holds one row
	for call, want := range whole {
		if len(want) < 7 || !slices.Equal(paged[call], want) {
			t.Errorf("%s: %v in pages, %v in one", call, paged[call], want)
		}
	}
	calls := tinev1.File_tine_v1_store_proto.Services().Get(0).Methods()
	for i := range calls.Len() {
		fields := calls.Get(i).Output().Fields()
		isListing := fields.ByName("next_cursor") != nil || fields.ByName("next_after_sequence") != nil
		if name := string(calls.Get(i).Name()); isListing && whole[name] == nil {
			t.Errorf("%s is a listing call and is not tested here", name)
		}
	}
}

func TestPagesGiveWhatTheFirstOneHasAlone(t *testing.T) {
	client := dial(t, startDaemon(t, "--ephemeral").URL())
	session := fillListings(t, client)
	first := true
	for page, err := range Pages(within(t), stub(client).BuildContext,
		&tinev1.BuildContextRequest{SessionId: session, Limit: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		if (page.HeadId != "") != first {
			t.Errorf("the first page: %v, the head %q", first, page.HeadId)
		}
		first = false
	}
}

// servePages answers ListSessions with the pages, under the cursors "", "1", "2", …, then with an
// error.
func servePages(t *testing.T, pages ...[]string) *server {
	return serve(t, func(c *serverCall) {
		var request tinev1.ListSessionsRequest
		if err := proto.Unmarshal(c.request.Body, &request); err != nil {
			t.Error(err)
		}
		number := 0
		if request.Cursor != "" {
			fmt.Sscan(request.Cursor, &number)
		}
		if number == len(pages) {
			c.reply(&tinev1.Response{Status: &tinev1.Status{
				Code: int32(codes.DataLoss), Reason: string(DataLoss),
			}})
			return
		}
		reply := &tinev1.ListSessionsResponse{NextCursor: fmt.Sprint(number + 1)}
		for _, id := range pages[number] {
			reply.Sessions = append(reply.Sessions, &tinev1.Session{Id: id})
		}
		body, err := proto.Marshal(reply)
		if err != nil {
			t.Error(err)
		}
		c.reply(&tinev1.Response{Status: &tinev1.Status{}, Body: body})
	})
}

func allSessions(
	ctx context.Context, client *Client, request *tinev1.ListSessionsRequest,
) iter.Seq2[*tinev1.Session, error] {
	return All(ctx, stub(client).ListSessions, request, (*tinev1.ListSessionsResponse).GetSessions)
}

func TestAnErrorOfAPageComesOnceAndLast(t *testing.T) {
	s := servePages(t, []string{"a", "b"}, nil, []string{"c"})
	request := &tinev1.ListSessionsRequest{}
	sessions := allSessions(within(t), dial(t, s.url()), request)
	for range 2 { // a sequence can be ranged over again
		var got []string
		var failures []error
		for session, err := range sessions {
			if err != nil {
				failures = append(failures, err)
				continue
			}
			got = append(got, session.Id)
		}
		if !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("%v", got)
		}
		if len(failures) != 1 || !Is(failures[0], DataLoss) {
			t.Errorf("%v", failures)
		}
	}
	if request.Cursor != "" {
		t.Error("the caller's request was changed")
	}
}

func TestALoopThatIsLeftFetchesNoMorePages(t *testing.T) {
	s := servePages(t, []string{"a", "b"}, []string{"c"}, []string{"d"})
	checkLeaks(t, func() {
		client := dial(t, s.url())
		for session, err := range allSessions(within(t), client, nil) {
			if err != nil {
				t.Fatal(err)
			}
			if session.Id == "c" {
				break
			}
		}
		client.Close()
	})
	if _, requests := s.count(); requests != 2 {
		t.Errorf("%d requests, wanted 2", requests)
	}
}

func TestAContextEndsAListing(t *testing.T) {
	s := servePages(t, []string{"a"}, []string{"b"})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var last error
	for _, err := range allSessions(ctx, dial(t, s.url()), nil) {
		cancel()
		last = err
	}
	wantStatus(t, last, codes.Canceled, Cancelled)
}
