// Waits until the daemon answers.

import { Code, ConnectError } from "@connectrpc/connect";
import { pause } from "./abort.js";
import { Backoff, now } from "./backoff.js";
import type { CallRequest, Calls } from "./call.js";
import { canceled, clientClosed } from "./errors.js";
import type { Link } from "./link.js";

export interface ReadyOptions {
  /** Cancels the wait. */
  signal?: AbortSignal;
  /** The maximum wait. Default, and 0: no limit. */
  timeoutMs?: number;
}

/**
 * Calls Health until the server answers. Rejects with the reason why it does not: after the
 * timeout, or at once if waiting cannot help. `closed` is aborted when the transport is closed.
 */
export async function untilReady(
  link: Link,
  calls: Calls,
  request: CallRequest,
  closed: AbortSignal,
): Promise<void> {
  const { signal, timeoutMs } = request;
  const deadline = now() + (timeoutMs ?? Number.POSITIVE_INFINITY);
  const backoff = new Backoff();
  let left = timeoutMs;
  for (;;) {
    try {
      await calls.call({ ...request, timeoutMs: left });
      return;
    } catch (error) {
      const isUnavailable = error instanceof ConnectError && error.code === Code.Unavailable;
      const { isAbsent, cannotStart } = link.failure;
      if (!isUnavailable || cannotStart) throw error;
      await pause(Math.min(backoff.next(isAbsent), deadline - now()), signal, closed);
      if (closed.aborted) throw clientClosed();
      if (signal?.aborted) throw canceled(signal.reason);
      if (now() >= deadline) throw error;
      if (timeoutMs !== undefined) left = deadline - now();
    }
  }
}
