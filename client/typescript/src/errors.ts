// The statuses that the client itself comes to, in the words of libtine.

import { Code, ConnectError } from "@connectrpc/connect";

const REASON = "tine-reason";

/** Makes the error of a call. The reason is in its metadata, as `tine-reason`. */
export function errorOf(
  code: Code,
  reason: string,
  message: string,
  cause?: unknown,
): ConnectError {
  const error = new ConnectError(message, code, undefined, undefined, cause);
  // Of a server gone wild it may be anything, and a header's value may not.
  if (reason !== "") error.metadata.set(REASON, encodeURIComponent(reason));
  return error;
}

/**
 * The reason that an error of this package gives, as `SESSION_NOT_FOUND`: a name of `enum Reason`
 * of store.proto without its prefix, or the name of the code. "" for any other error.
 */
export function reason(error: unknown): string {
  if (!(error instanceof ConnectError)) return "";
  const value = error.metadata.get(REASON) ?? "";
  try {
    return decodeURIComponent(value);
  } catch {
    return value; // somebody else's
  }
}

export function unavailable(message: string, cause?: unknown): ConnectError {
  return errorOf(Code.Unavailable, "UNAVAILABLE", message, cause);
}

export function deadlineExceeded(wasSent: boolean): ConnectError {
  return errorOf(
    Code.DeadlineExceeded,
    "DEADLINE_EXCEEDED",
    wasSent
      ? "the time is up and there is no reply yet; whether the call was done is not known"
      : "the time is up before the call could be sent; nothing was done",
  );
}

/** The call was given up by its caller. Another's ConnectError is handed on: it says more. */
export function canceled(cause: unknown): ConnectError {
  if (cause instanceof ConnectError) return cause;
  return errorOf(Code.Canceled, "CANCELLED", "the call was cancelled", cause);
}

export function clientClosed(): ConnectError {
  return errorOf(Code.Canceled, "CANCELLED", "the client is closed");
}

export function invalidArgument(message: string, cause?: unknown): ConnectError {
  return errorOf(Code.InvalidArgument, "INVALID_ARGUMENT", message, cause);
}

export function undecodable(cause: unknown): ConnectError {
  return errorOf(Code.Internal, "INTERNAL", "the reply cannot be decoded", cause);
}
