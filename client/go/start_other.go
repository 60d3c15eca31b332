//go:build !linux

package tine

import (
	"context"
	"errors"
	"net"
)

// starter exists on Linux only.
type starter struct{}

func newStarter(address) (*starter, error) {
	return nil, errors.New("tine: WithStart is for Linux only; start tined by other means")
}

func (*starter) start(context.Context, func() (net.Conn, error)) (net.Conn, error) {
	return nil, errors.ErrUnsupported
}
