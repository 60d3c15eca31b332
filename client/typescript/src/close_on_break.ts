// Ends a stream when the loop over it is left.

/**
 * Ends the stream when the loop over it is left by `break`, `return` or an error. Connect does not
 * report that to a transport; this aborts the stream's signal:
 *
 *     for await (const { event } of closeOnBreak((signal) => tine.watchEvents({}, { signal }))) {
 *       if (event?.type === "session.created") break;
 *     }
 *
 * The stream is opened at once. To add another signal, combine both by `AbortSignal.any`.
 */
export function closeOnBreak<T>(
  open: (signal: AbortSignal) => AsyncIterable<T>,
): AsyncIterableIterator<T> {
  const stop = new AbortController();
  const source = open(stop.signal)[Symbol.asyncIterator]();
  const end = () => stop.abort();
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: () => source.next(),
    return: async (value?: T) => {
      end();
      return { done: true, value };
    },
    throw: async (error?: unknown) => {
      end();
      throw error;
    },
  };
}
