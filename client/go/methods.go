package tine

import (
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/tine-store/tine/client/go/tinev1"
)

// method is what the contract says of a call.
type method struct {
	isRead       bool // running it again changes nothing
	isRemembered bool // an operation id makes running it again change nothing
}

// methods maps the paths of gRPC to what the descriptor says of them.
var methods = sync.OnceValue(func() map[string]method {
	found := map[string]method{}
	services := tinev1.File_tine_v1_store_proto.Services()
	for i := range services.Len() {
		service := services.Get(i)
		for j := range service.Methods().Len() {
			described := service.Methods().Get(j)
			path := "/" + string(service.FullName()) + "/" + string(described.Name())
			found[path] = method{
				isRead: isRead(described),
				// A broadcast stores nothing, so nothing remembers it.
				isRemembered: path != tinev1.StoreService_BroadcastEvent_FullMethodName,
			}
		}
	}
	return found
})

func isRead(described protoreflect.MethodDescriptor) bool {
	options, ok := described.Options().(*descriptorpb.MethodOptions)
	return ok && options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
}
