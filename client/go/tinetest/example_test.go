package tinetest_test

import (
	"testing"

	tine "github.com/tine-store/tine/client/go"
	"github.com/tine-store/tine/client/go/tinetest"
	"github.com/tine-store/tine/client/go/tinev1"
)

func TestMyAgent(t *testing.T) {
	client, err := tine.Dial(tinetest.Start(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	store := tinev1.NewStoreServiceClient(client)
	if _, err := store.ListSessions(t.Context(), &tinev1.ListSessionsRequest{}); err != nil {
		t.Error(err)
	}
}
