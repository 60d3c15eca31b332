package tine

// What the contract says about the methods: which are reads, and which may be repeated.

import (
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/tine-store/tine/client/go/tinev1"
)

// method holds the traits of a method.
type method struct {
	isRead       bool // it changes nothing
	isRemembered bool // repeated under the same operation id, it changes nothing
}

// methods maps the gRPC paths of all methods to their traits.
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
				// A broadcast is not stored, so tined does not remember it.
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
