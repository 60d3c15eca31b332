// A stream that ends with the loop over it.

/**
 * Makes leaving a loop end the stream that it reads. Connect does not tell a transport that a
 * `for await` was left by `break`, `return` or an error; this does, by the signal:
 *
 *     for await (const { event } of closeOnBreak((signal) => tine.watchEvents({}, { signal }))) {
 *       if (event?.type === "session.created") break;
 *     }
 *
 * The stream is opened at once. To end it by another signal too, give both to `AbortSignal.any`.
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
