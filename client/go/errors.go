package tine

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Names of enum Reason (proto/tine/v1/store.proto) that this client says itself. A failure with
// nothing more to say has the name of its code.
const (
	reasonUnavailable      = "UNAVAILABLE"
	reasonDeadlineExceeded = "DEADLINE_EXCEEDED"
	reasonCancelled        = "CANCELLED"
	reasonInternal         = "INTERNAL"
	reasonInvalidArgument  = "INVALID_ARGUMENT"
	reasonTooLong          = "TOO_LONG"
	reasonUnimplemented    = "UNIMPLEMENTED"
)

// statusError is a status with the reason that the envelope has beside it.
type statusError struct {
	code            codes.Code
	message, reason string
}

// Error says what a *status.Status of the same code would say, for logs to look alike.
func (e *statusError) Error() string {
	return fmt.Sprintf("rpc error: code = %s desc = %s", e.code, e.message)
}

// GRPCStatus makes it an error of google.golang.org/grpc/status.
func (e *statusError) GRPCStatus() *status.Status { return status.New(e.code, e.message) }

// Is compares as the errors of google.golang.org/grpc/status do.
func (e *statusError) Is(target error) bool {
	other, ok := target.(*statusError)
	return ok && *e == *other
}

// Reason returns why a call failed: a name of enum Reason in store.proto without its prefix, such
// as SESSION_NOT_FOUND; "" if err is not an error of this package.
func Reason(err error) string {
	var own *statusError
	if errors.As(err, &own) {
		return own.reason
	}
	return ""
}

func failure(code codes.Code, reason, format string, arguments ...any) *statusError {
	return &statusError{code: code, reason: reason, message: fmt.Sprintf(format, arguments...)}
}

// contextError says that a call ended because its context did, before or after it was sent.
func contextError(err error, sent bool) *statusError {
	code, reason, message := codes.DeadlineExceeded, reasonDeadlineExceeded, "the time is up"
	if errors.Is(err, context.Canceled) {
		code, reason, message = codes.Canceled, reasonCancelled, "the call was cancelled"
	}
	if sent {
		return failure(code, reason,
			"%s and there is no reply yet; whether the call was done is not known", message)
	}
	return failure(code, reason, "%s before the call could be sent; nothing was done", message)
}

// closedError says that a call ended because Close was called.
func closedError() *statusError {
	return failure(codes.Canceled, reasonCancelled, "the client is closed")
}
