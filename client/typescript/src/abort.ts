// Listens to the AbortSignals of callers. Many calls may share one signal, and Node warns of a leak
// at the eleventh listener. So this adds one listener to a signal, for all calls.

const waiting = new WeakMap<AbortSignal, Listeners>();

class Listeners {
  readonly callbacks = new Set<() => void>();

  readonly onAbort = (): void => {
    for (const callback of [...this.callbacks]) callback();
  };
}

/** Calls `callback` when the signal is aborted, until `abortIgnore`. */
export function abortListen(signal: AbortSignal | undefined, callback: () => void): void {
  if (!signal) return;
  let listeners = waiting.get(signal);
  if (!listeners) {
    listeners = new Listeners();
    waiting.set(signal, listeners);
  }
  if (listeners.callbacks.size === 0) signal.addEventListener("abort", listeners.onAbort);
  listeners.callbacks.add(callback);
}

export function abortIgnore(signal: AbortSignal | undefined, callback: () => void): void {
  if (!signal) return;
  const listeners = waiting.get(signal);
  if (!listeners?.callbacks.delete(callback) || listeners.callbacks.size > 0) return;
  signal.removeEventListener("abort", listeners.onAbort);
}

/** Waits; resolves earlier if one of the signals is aborted. */
export function pause(ms: number, ...signals: (AbortSignal | undefined)[]): Promise<void> {
  if (signals.some((signal) => signal?.aborted)) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      for (const signal of signals) abortIgnore(signal, end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    for (const signal of signals) abortListen(signal, end);
  });
}
