// The errors of calls, and their reasons.

import { Code, ConnectError } from "@connectrpc/connect";
import type { Reason } from "./reason.js";

const REASON = "tine-reason";

/** Creates the error of a call. The reason is in its message and, as `tine-reason`, in metadata. */
export function errorOf(
  code: Code,
  reason: string,
  message: string,
  cause?: unknown,
): ConnectError {
  const text = isNameOf(code, reason) ? message : `${reason}: ${message}`;
  const error = new ConnectError(text, code, undefined, undefined, cause);
  (error as { rawMessage: string }).rawMessage = message;
  // A faulty server may send characters that a header value must not contain.
  if (reason !== "") error.metadata.set(REASON, encodeURIComponent(reason));
  return error;
}

// Whether the reason equals the code, which ConnectError puts before the message.
function isNameOf(code: Code, reason: string): boolean {
  return reason.replaceAll("_", "") === Code[code]?.toUpperCase() || reason === "";
}

/**
 * Returns why a call failed: the name of a `Reason`, such as `SESSION_NOT_FOUND`, or of its code;
 * "" for other errors. A newer server may return a name that is not in `Reason`.
 */
export function reason(error: unknown): string {
  if (!(error instanceof ConnectError)) return "";
  const value = error.metadata.get(REASON) ?? "";
  try {
    return decodeURIComponent(value);
  } catch {
    return value; // not encoded by this package
  }
}

/** Whether the error is of a call that failed for this reason. */
export function isReason(error: unknown, wanted: Reason): boolean {
  return reason(error) === wanted;
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

/** The caller aborted the call. A ConnectError as the abort reason is returned itself. */
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
