// A clock that advances only when a client waits between attempts to connect.

import type { TestContext } from "node:test";

/**
 * Ends every wait at once and records it in the array that it returns. `onWait` runs before a wait
 * ends. Timers that do not keep the process alive are deadlines; they never fire.
 */
export function clock(
  context: TestContext,
  onWait: (waits: number[]) => Promise<void> | void = () => {},
) {
  const waits: number[] = [];
  let now = 1000;
  const wait = async (callback: () => void, ms: number) => {
    waits.push(ms);
    now += ms;
    await onWait(waits);
    setImmediate(callback);
  };
  context.mock.method(Math, "random", () => 0);
  context.mock.method(performance, "now", () => now);
  context.mock.method(globalThis, "setTimeout", (callback: () => void, ms: number) => {
    let isWait = true;
    queueMicrotask(() => {
      if (isWait) void wait(callback, ms);
    });
    return {
      unref: () => {
        isWait = false;
      },
    };
  });
  return waits;
}
