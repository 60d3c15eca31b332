package tine

import (
	"context"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tine-store/tine/client/go/tinev1"
)

// Call is a method of tinev1.StoreServiceClient, such as store.ListSessions.
type Call[Q, R proto.Message] func(ctx context.Context, request Q, opts ...grpc.CallOption) (R, error)

// All returns what a listing call lists, from all its pages, each fetched when the loop comes to
// it. items takes them out of a page:
//
//	for session, err := range tine.All(ctx, store.ListSessions, &tinev1.ListSessionsRequest{},
//		(*tinev1.ListSessionsResponse).GetSessions) {
//
// An error comes once, as the last pair. The request's limit and page_bytes apply to each page, and
// its cursor says where to begin. The request is not changed. Of SummarizeCost several rows may be
// of one group: the caller adds them up.
func All[Q, R proto.Message, T any](
	ctx context.Context, call Call[Q, R], request Q, items func(R) []T,
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for page, err := range Pages(ctx, call, request) {
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range items(page) {
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}

// Pages returns the pages of a listing call, each fetched when the loop comes to it. It is for what
// a page says beside its items, as the first page of BuildContext does; else see All.
func Pages[Q, R proto.Message](
	ctx context.Context, call Call[Q, R], request Q,
) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		next := request.ProtoReflect().New()
		proto.Merge(next.Interface(), request)
		for {
			page, err := call(ctx, next.Interface().(Q))
			if !yield(page, err) || err != nil || !turn(next, page) {
				return
			}
		}
	}
}

// turn makes a request ask for what follows a page. False: nothing does.
func turn(request protoreflect.Message, page proto.Message) bool {
	switch page := page.(type) {
	case interface{ GetNextCursor() string }:
		cursor := request.Descriptor().Fields().ByName("cursor")
		request.Set(cursor, protoreflect.ValueOfString(page.GetNextCursor()))
		return page.GetNextCursor() != ""
	case *tinev1.ListEventsResponse:
		request := request.Interface().(*tinev1.ListEventsRequest)
		request.AfterSequence = page.NextAfterSequence
		request.InstanceId = page.InstanceId // a store in its place is not the same listing
		return page.More
	}
	return false // no listing: there is one page
}
