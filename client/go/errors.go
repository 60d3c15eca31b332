package tine

// The errors of this package: statuses of gRPC with a Reason.

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// statusError is a status and its reason, which a gRPC status does not have.
type statusError struct {
	code    codes.Code
	reason  Reason
	message string
}

// Error returns the text of a *status.Status with the same code and message, and the reason.
func (e *statusError) Error() string {
	text := fmt.Sprintf("rpc error: code = %s desc = %s", e.code, e.message)
	if e.reason != "" {
		text += fmt.Sprintf(" (%s)", e.reason)
	}
	return text
}

// GRPCStatus makes package google.golang.org/grpc/status recognise the error.
func (e *statusError) GRPCStatus() *status.Status { return status.New(e.code, e.message) }

// Is reports whether target is this error's Reason, or an equal error.
func (e *statusError) Is(target error) bool {
	if reason, ok := target.(Reason); ok {
		return e.reason == reason
	}
	other, ok := target.(*statusError)
	return ok && *e == *other
}

// Is reports whether a call failed for this reason. The error may be wrapped.
func Is(err error, reason Reason) bool { return errors.Is(err, reason) }

// ReasonOf returns why a call failed; "" if err is not an error of this package.
func ReasonOf(err error) Reason {
	var own *statusError
	if errors.As(err, &own) {
		return own.reason
	}
	return ""
}

func failure(code codes.Code, reason Reason, format string, arguments ...any) *statusError {
	return &statusError{code: code, reason: reason, message: fmt.Sprintf(format, arguments...)}
}

// contextError returns the error of a call whose context ended, before or after the call was sent.
func contextError(err error, sent bool) *statusError {
	code, reason, message := codes.DeadlineExceeded, DeadlineExceeded, "the time is up"
	if errors.Is(err, context.Canceled) {
		code, reason, message = codes.Canceled, Cancelled, "the call was cancelled"
	}
	if sent {
		return failure(code, reason,
			"%s and there is no reply yet; whether the call was done is not known", message)
	}
	return failure(code, reason, "%s before the call could be sent; nothing was done", message)
}

// closedError returns the error of a call on a closed client.
func closedError() *statusError {
	return failure(codes.Canceled, Cancelled, "the client is closed")
}
