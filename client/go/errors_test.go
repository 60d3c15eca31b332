package tine

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tine-store/tine/client/go/tinev1"
)

// reasonsOfThisPackage returns the constants of type Reason by name.
func reasonsOfThisPackage(t *testing.T) map[string]Reason {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "reasons.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]Reason{}
	ast.Inspect(file, func(node ast.Node) bool {
		constant, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := constant.Type.(*ast.Ident); !ok || kind.Name != "Reason" {
			t.Errorf("%s is not of type Reason", constant.Names[0].Name)
		}
		value, err := strconv.Unquote(constant.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		found[constant.Names[0].Name] = Reason(value)
		return true
	})
	return found
}

// goName returns SESSION_NOT_FOUND as SessionNotFound.
func goName(name string) string {
	out := ""
	for word := range strings.SplitSeq(name, "_") {
		switch word {
		case "ID", "UTF8", "JSON":
			out += word
		default:
			out += word[:1] + strings.ToLower(word[1:])
		}
	}
	return out
}

func TestEachReasonOfTheContractIsAConstant(t *testing.T) {
	want := map[string]Reason{"Cancelled": Cancelled, "Internal": Internal}
	for number, name := range tinev1.Reason_name {
		if number != int32(tinev1.Reason_REASON_UNSPECIFIED) {
			name = strings.TrimPrefix(name, "REASON_")
			want[goName(name)] = Reason(name)
		}
	}
	got := reasonsOfThisPackage(t)
	for name, reason := range want {
		if got[name] != reason {
			t.Errorf("%s is %q, wanted %q", name, got[name], reason)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d constants, wanted %d", len(got), len(want))
	}
}

func TestIsFindsTheReason(t *testing.T) {
	var err error = failure(codes.NotFound, SessionNotFound, "there is no session")
	wrapped := fmt.Errorf("reading the plan: %w", err)
	joined := errors.Join(errors.New("other"), wrapped)
	for _, err := range []error{err, wrapped, joined} {
		if !Is(err, SessionNotFound) || !errors.Is(err, SessionNotFound) {
			t.Errorf("%v is not SessionNotFound", err)
		}
		if Is(err, MessageNotFound) || errors.Is(err, MessageNotFound) {
			t.Errorf("%v is MessageNotFound", err)
		}
		if ReasonOf(err) != SessionNotFound || status.Code(errors.Unwrap(wrapped)) != codes.NotFound {
			t.Errorf("%v has the reason %q", err, ReasonOf(err))
		}
	}
	for _, err := range []error{nil, errors.New("other")} {
		if Is(err, SessionNotFound) || ReasonOf(err) != "" {
			t.Errorf("%v has the reason %q", err, ReasonOf(err))
		}
	}
}

func TestTheReasonStandsInTheMessageOfAnError(t *testing.T) {
	err := failure(codes.Aborted, HeadMoved, "the head is another")
	want := status.Error(codes.Aborted, "the head is another").Error() + " (HEAD_MOVED)"
	if err.Error() != want {
		t.Errorf("%q, wanted %q", err, want)
	}
	if message := status.Convert(err).Message(); message != "the head is another" {
		t.Errorf("the status says %q", message)
	}
	bare := &statusError{code: codes.Unknown, message: "a server that gives no reason"}
	if want := status.Error(bare.code, bare.message).Error(); bare.Error() != want {
		t.Errorf("%q, wanted %q", bare, want)
	}
}

// The README says which arguments are refused.
func TestMalformedIDsAndLargeLimitsAreInvalidArguments(t *testing.T) {
	client := dial(t, startDaemon(t, "--ephemeral").URL())
	session := createSession(t, client)
	_, err := stub(client).GetSession(within(t), &tinev1.GetSessionRequest{SessionId: "malformed"})
	wantStatus(t, err, codes.InvalidArgument, InvalidArgument)
	_, err = stub(client).GetSession(within(t), &tinev1.GetSessionRequest{SessionId: noSession})
	wantStatus(t, err, codes.NotFound, SessionNotFound)
	for limit, code := range map[uint32]codes.Code{1000: codes.OK, 1001: codes.InvalidArgument} {
		_, err = stub(client).ListSessions(within(t), &tinev1.ListSessionsRequest{Limit: limit})
		if status.Code(err) != code {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
	for limit, code := range map[uint32]codes.Code{100_000: codes.OK, 100_001: codes.InvalidArgument} {
		_, err = stub(client).ListMessages(within(t),
			&tinev1.ListMessagesRequest{SessionId: session, Limit: limit})
		if status.Code(err) != code {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}
