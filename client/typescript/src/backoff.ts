// How long to wait before the next attempt, after one that failed.

const ABSENT_MS_MIN = 1;
const MS_MIN = 50;
const MS_MAX = 2000;

/**
 * The waits of one row of failures. Each is twice the one before, from 50 ms up to 2 s, less up to a
 * quarter by chance, so that many clients of one server do not come back at once. A Unix socket on
 * which nobody listens is tried again after 1 ms first: a tined that was just started listens a few
 * milliseconds later.
 */
export class Backoff {
  #ms = 0;

  /** The milliseconds to wait after one more failure. */
  next(isAbsent = false): number {
    this.#ms = Math.min(Math.max(2 * this.#ms, isAbsent ? ABSENT_MS_MIN : MS_MIN), MS_MAX);
    return this.#ms * (1 - Math.random() / 4);
  }

  /** After a success. */
  reset(): void {
    this.#ms = 0;
  }
}

/** Milliseconds on a clock that is never set back. */
export function now(): number {
  return performance.now();
}
