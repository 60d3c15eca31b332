// A subscription to the bus. It buffers a short queue of messages and then stops reading. It keeps
// the process alive only while somebody waits for a message.

import { abortIgnore, abortListen } from "./abort.js";
import { Connection } from "./dial.js";
import { PUB } from "./frame.js";

const QUEUE_MAX = 1024;

/** `silence`: no message in time. `broken`: the connection has ended. */
export type FeedNews = Uint8Array | "silence" | "broken";

export class Feed {
  /** Whether a message came: then the server has registered the subscriber. */
  isLive = false;

  readonly #connection: Connection;
  #queue: Uint8Array[] = [];
  #at = 0; // position in the queue
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

  /** Returns the next message. Waits at most `ms`; an abort of the signal is `silence` too. */
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

  /** Waits at most `ms` for the first message or the end. Removes nothing from the queue. */
  async settle(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.isLive && !this.#isBroken) await this.#wait(ms, signal);
  }

  /** Closes the connection. Messages in the queue can still be taken. */
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
      // After a long block the event loop runs timers before sockets. So this first lets it read
      // what has come in the meantime.
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
