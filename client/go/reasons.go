package tine

// The reasons of failed calls.

// Reason says why a call failed, more precisely than its code. It is a name of enum Reason in
// proto/tine/v1/store.proto without the prefix REASON_. It is an error itself, so that
// errors.Is(err, SessionNotFound) works.
type Reason string

func (r Reason) Error() string { return string(r) }

// The reasons that tined gives, by the code that they come with.
const (
	// codes.NotFound
	SessionNotFound Reason = "SESSION_NOT_FOUND"
	MessageNotFound Reason = "MESSAGE_NOT_FOUND"
	MemoryNotFound  Reason = "MEMORY_NOT_FOUND"
	CallNotFound    Reason = "CALL_NOT_FOUND"

	// codes.FailedPrecondition
	SessionDeleted   Reason = "SESSION_DELETED"
	SessionArchived  Reason = "SESSION_ARCHIVED"
	MessageSealed    Reason = "MESSAGE_SEALED"
	ForksExist       Reason = "FORKS_EXIST"
	ForkChainTooDeep Reason = "FORK_CHAIN_TOO_DEEP"

	// codes.AlreadyExists
	SlugTaken     Reason = "SLUG_TAKEN"
	ExternalTaken Reason = "EXTERNAL_TAKEN"

	// codes.Aborted
	HeadMoved         Reason = "HEAD_MOVED"
	OperationIDReused Reason = "OPERATION_ID_REUSED"
	HistoryDiverged   Reason = "HISTORY_DIVERGED"

	// codes.InvalidArgument
	InvalidArgument Reason = "INVALID_ARGUMENT" // also: a malformed id, a limit that is too large
	InvalidPart     Reason = "INVALID_PART"
	UnknownPartKind Reason = "UNKNOWN_PART_KIND"
	NotInTree       Reason = "NOT_IN_TREE"
	InvalidUTF8     Reason = "INVALID_UTF8"
	InvalidJSON     Reason = "INVALID_JSON"
	TooLong         Reason = "TOO_LONG" // also: too many

	// codes.ResourceExhausted
	StoreFull         Reason = "STORE_FULL"
	TooManyInFlight   Reason = "TOO_MANY_IN_FLIGHT"
	QueueFull         Reason = "QUEUE_FULL"
	ResourceExhausted Reason = "RESOURCE_EXHAUSTED"

	// codes.OutOfRange
	EventsGone   Reason = "EVENTS_GONE"
	StoreChanged Reason = "STORE_CHANGED"

	// The code of the same name
	Unauthenticated  Reason = "UNAUTHENTICATED"
	Unimplemented    Reason = "UNIMPLEMENTED"
	DeadlineExceeded Reason = "DEADLINE_EXCEEDED"
	Unavailable      Reason = "UNAVAILABLE"
	DataLoss         Reason = "DATA_LOSS"
)

// The reasons that only this client gives.
const (
	Cancelled Reason = "CANCELLED" // codes.Canceled: the context or the client ended
	Internal  Reason = "INTERNAL"  // codes.Internal: the reply or the request cannot be used
)
