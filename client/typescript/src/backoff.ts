// How long to wait before an attempt is repeated.

const ABSENT_MS_MIN = 1;
const MS_MIN = 50;
const MS_MAX = 2000;

/**
 * The waits between consecutive failures. Each is twice the previous one, from 50 ms up to 2 s,
 * less up to 25 %, chosen at random so that many clients do not retry at the same time. If nobody
 * listens on the Unix socket, the first wait is 1 ms: a tined that was just started listens a few
 * milliseconds later.
 */
export class Backoff {
  #ms = 0;

  /** Returns how many milliseconds to wait after one more failure. */
  next(isAbsent = false): number {
    this.#ms = Math.min(Math.max(2 * this.#ms, isAbsent ? ABSENT_MS_MIN : MS_MIN), MS_MAX);
    return this.#ms * (1 - Math.random() / 4);
  }

  /** Called after a success. */
  reset(): void {
    this.#ms = 0;
  }
}

/** The monotonic time in milliseconds. */
export function now(): number {
  return performance.now();
}
