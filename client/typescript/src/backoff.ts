// How long to wait between attempts.

const MS_MIN = 50;
const MS_MAX = 2000;

/**
 * The pause after the `failures`-th failure in a row: 50 ms, 100 ms … 2 s, less up to a quarter by
 * chance, so that many clients of one server do not come back at once. After none it is 0.
 */
export function backoffMs(failures: number): number {
  if (failures === 0) return 0;
  const ms = Math.min(MS_MIN * 2 ** Math.min(failures - 1, 16), MS_MAX);
  return ms * (1 - Math.random() / 4);
}

/** Milliseconds on a clock that is never set back. */
export function now(): number {
  return performance.now();
}
