// The statuses that the client itself comes to, in the words of libtine.

import { Code, ConnectError } from "@connectrpc/connect";
import type { Reason } from "./reason.js";

const REASON = "tine-reason";

/** Makes the error of a call. The reason is in its message, and in its metadata as `tine-reason`. */
export function errorOf(
  code: Code,
  reason: string,
  message: string,
  cause?: unknown,
): ConnectError {
  const text = isNameOf(code, reason) ? message : `${reason}: ${message}`;
  const error = new ConnectError(text, code, undefined, undefined, cause);
  (error as { rawMessage: string }).rawMessage = message;
  // A faulty server may send any text, but a header's value may not hold every character.
  if (reason !== "") error.metadata.set(REASON, encodeURIComponent(reason));
  return error;
}

// Whether the reason says no more than the code, which ConnectError puts before the message.
function isNameOf(code: Code, reason: string): boolean {
  return reason.replaceAll("_", "") === Code[code]?.toUpperCase() || reason === "";
}

/**
 * The reason that an error of this package gives: the name of a `Reason`, as `SESSION_NOT_FOUND`, or
 * the name of its code. "" for any other error. A newer server may give one that `Reason` lacks.
 */
export function reason(error: unknown): string {
  if (!(error instanceof ConnectError)) return "";
  const value = error.metadata.get(REASON) ?? "";
  try {
    return decodeURIComponent(value);
  } catch {
    return value; // another program's
  }
}

/** Whether a call failed for this reason. False for any other error. */
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
