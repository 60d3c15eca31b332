package tine

// Iterators over listing calls.

import (
	"context"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tine-store/tine/client/go/tinev1"
)

// Listing is a listing call of tinev1.StoreServiceClient, such as store.ListSessions.
type Listing[Q, R proto.Message] func(
	ctx context.Context, request Q, opts ...grpc.CallOption,
) (R, error)

// All iterates over the items of a listing call, and fetches each page when the loop comes to it.
// items returns the items of a page:
//
//	for session, err := range tine.All(ctx, store.ListSessions, &tinev1.ListSessionsRequest{},
//		(*tinev1.ListSessionsResponse).GetSessions) {
//
// An error ends the iteration, as its last pair. The request's limit and page_bytes apply to each
// page, its cursor says where to begin, and the request is not changed. Several rows of
// SummarizeCost may belong to one group; the caller adds them up.
func All[Q, R proto.Message, T any](
	ctx context.Context, call Listing[Q, R], request Q, items func(R) []T,
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

// Pages iterates over the pages of a listing call, and fetches each when the loop comes to it. It
// is for replies that hold more than items, as the first page of BuildContext does.
func Pages[Q, R proto.Message](
	ctx context.Context, call Listing[Q, R], request Q,
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

// turn makes a request ask for the page that follows. It returns false after the last page.
func turn(request protoreflect.Message, page proto.Message) bool {
	switch page := page.(type) {
	case interface{ GetNextCursor() string }:
		cursor := request.Descriptor().Fields().ByName("cursor")
		request.Set(cursor, protoreflect.ValueOfString(page.GetNextCursor()))
		return page.GetNextCursor() != ""
	case *tinev1.ListEventsResponse:
		request := request.Interface().(*tinev1.ListEventsRequest)
		request.AfterSequence = page.NextAfterSequence
		request.InstanceId = page.InstanceId // tined refuses it if the store was replaced
		return page.More
	}
	return false // not a listing call: there is one page
}
