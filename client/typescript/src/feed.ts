// A subscription to the bus. It is read only while somebody asks: one that is slow is not sent more
// than the kernel and a short queue hold, and an idle one does not keep the process.

import { abortIgnore, abortListen } from "./abort.js";
import { Connection } from "./dial.js";
import { PUB } from "./frame.js";

const QUEUE_MAX = 1024;

/** `silence`: nothing came in time. `broken`: the connection is at its end. */
export type FeedNews = Uint8Array | "silence" | "broken";

export class Feed {
  /** Whether a message came: then the server counts the subscriber. */
  isLive = false;

  readonly #connection: Connection;
  #queue: Uint8Array[] = [];
  #at = 0; // in the queue
  #isBroken = false;
  #isPaused = false;
  #wake: ((isNews: boolean) => void) | undefined;

  constructor(path: string) {
    this.#connection = new Connection({ framing: "ipc", path }, PUB, {
      onOpen: () => {},
      onPayload: (message) => {
        this.#queue.push(message);
        this.isLive = true;
        this.#wake?.(true);
        this.#isPaused = this.#queue.length - this.#at >= QUEUE_MAX;
        return !this.#isPaused;
      },
      onDrain: () => {},
      onBroken: () => {
        this.#isBroken = true;
        this.#wake?.(true);
      },
    });
    this.#connection.ref(false);
  }

  /** The next message; waits `ms` for it, or until the signal is aborted, which is `silence`. */
  async next(ms: number, signal: AbortSignal): Promise<FeedNews> {
    for (;;) {
      const message = this.#queue[this.#at];
      if (message) {
        this.#took();
        return message;
      }
      if (this.#isBroken) return "broken";
      if (!(await this.#wait(ms, signal))) return "silence";
    }
  }

  /** Waits for the first message, or the end, for `ms` at most; takes nothing. */
  async settle(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.isLive && !this.#isBroken) await this.#wait(ms, signal);
  }

  /** Hangs up. What came before can still be taken. */
  close(): void {
    this.#isBroken = true;
    this.#connection.destroy();
    this.#wake?.(true);
  }

  #took(): void {
    this.#at++;
    if (this.#at === this.#queue.length) {
      this.#queue = [];
      this.#at = 0;
    }
    if (!this.#isPaused || this.#queue.length - this.#at > QUEUE_MAX / 2) return;
    this.#isPaused = false;
    if (!this.#isBroken) this.#connection.resume();
  }

  #wait(ms: number, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    return new Promise((resolve) => {
      const end = (isNews: boolean) => {
        clearTimeout(timer);
        clearImmediate(last);
        abortIgnore(signal, onAbort);
        this.#wake = undefined;
        this.#connection.ref(false);
        resolve(isNews);
      };
      const onAbort = () => end(false);
      // A loop that was kept busy for so long looks at its timers before its sockets: what came
      // meanwhile is no silence.
      let last: NodeJS.Immediate | undefined;
      const timer = setTimeout(() => {
        last = setImmediate(end, false);
      }, ms);
      abortListen(signal, onAbort);
      this.#wake = end;
      this.#connection.ref(true);
    });
  }
}
