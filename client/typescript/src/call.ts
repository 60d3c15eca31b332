// One call with its attempts: its deadline, its signal and its retries.

import { Code } from "@connectrpc/connect";
import { abortIgnore, abortListen } from "./abort.js";
import { Backoff, now } from "./backoff.js";
import {
  type Reply,
  type RequestFields,
  replyRead,
  requestSize,
  requestWrite,
} from "./envelope.js";
import {
  canceled,
  clientClosed,
  deadlineExceeded,
  errorOf,
  unavailable,
  undecodable,
} from "./errors.js";
import type { Link, Pending } from "./link.js";

const REQUEST_BYTES_MAX = 16 * 1024 * 1024;
export const TIMER_MS_MAX = 2 ** 31 - 1; // the limit of setTimeout: 24 days

export interface CallRequest {
  /** `/tine.v1.StoreService/GetSession` */
  readonly method: string;
  readonly body: Uint8Array;
  readonly operationId: string;
  readonly traceparent: string;
  readonly token: string;
  readonly sync?: boolean;
  /** undefined: no deadline. */
  readonly timeoutMs: number | undefined;
  readonly signal: AbortSignal | undefined;
  /** Whether it may be sent twice: it is a read, or the server remembers its operation id. */
  readonly isRepeatable: boolean;
  /** How long to retry a call without a deadline; one with a deadline until then. 0: never. */
  readonly retryMs: number;
}

/** The calls of a link. */
export class Calls {
  readonly #link: Link;
  readonly #open = new Set<Call>();
  #isClosed = false;

  constructor(link: Link) {
    this.#link = link;
  }

  /** Resolves with the encoded reply. Rejects with a ConnectError. */
  call(request: CallRequest): Promise<Uint8Array> {
    if (this.#isClosed) return Promise.reject(clientClosed());
    return new Promise((resolve, reject) => {
      const call = new Call(this.#link, request, (body, error) => {
        this.#open.delete(call);
        if (error) reject(error);
        else resolve(body);
      });
      this.#open.add(call);
      call.begin();
    });
  }

  /** Ends calls in flight with the error, and later ones with CANCELED. */
  close(error = clientClosed()): void {
    this.#isClosed = true;
    for (const call of [...this.#open]) call.fail(error);
    this.#link.close();
  }
}

type Done = (body: Uint8Array, error?: Error) => void;

const NOTHING = new Uint8Array(0);

class Call implements Pending {
  readonly #link: Link;
  readonly #request: CallRequest;
  readonly #done: Done;
  readonly #deadline: number; // Infinity: no deadline
  readonly #retryUntil: number; // 0: no retries
  #envelope: RequestFields;
  #deadlineTimer: NodeJS.Timeout | undefined;
  #patienceTimer: NodeJS.Timeout | undefined;
  #pauseTimer: NodeJS.Timeout | undefined; // before the next attempt
  #backoff: Backoff | undefined; // made by the first failure
  #wasSent = false; // in this attempt
  #wasEverSent = false;
  #wasStale = false;
  #isDone = false;

  constructor(link: Link, request: CallRequest, done: Done) {
    const { timeoutMs, retryMs } = request;
    const begun = now();
    this.#link = link;
    this.#request = request;
    this.#done = done;
    this.#deadline = begun + (timeoutMs ?? Number.POSITIVE_INFINITY);
    this.#retryUntil =
      retryMs === 0 ? 0 : timeoutMs === undefined ? begun + retryMs : this.#deadline;
    this.#envelope = { ...request, timeoutMs: timeoutMs ?? 0 };
  }

  begin(): void {
    const { signal } = this.#request;
    if (signal?.aborted) {
      this.fail(canceled(signal.reason));
      return;
    }
    if (requestSize(this.#envelope) > REQUEST_BYTES_MAX) {
      const message = "the request is longer than 16 MiB; send it in several";
      this.fail(errorOf(Code.InvalidArgument, "TOO_LONG", message));
      return;
    }
    abortListen(signal, this.#onAbort);
    this.#deadlineSet();
    if (this.isPatient) this.#patienceSet();
    this.#attempt();
  }

  get isPatient(): boolean {
    return now() < this.#retryUntil;
  }

  size(): number {
    if (this.#deadline !== Number.POSITIVE_INFINITY) {
      const timeoutMs = Math.max(1, Math.ceil(this.#deadline - now()));
      this.#envelope = { ...this.#envelope, timeoutMs };
    }
    return requestSize(this.#envelope);
  }

  write(out: Buffer, at: number): void {
    requestWrite(out, at, this.#envelope);
  }

  onSent(wasSent: boolean): void {
    this.#wasSent = wasSent;
    this.#wasEverSent ||= wasSent;
  }

  onReply(bytes: Uint8Array): void {
    let reply: Reply;
    try {
      reply = replyRead(bytes);
    } catch (error) {
      this.fail(undecodable(error));
      return;
    }
    if (reply.code === 0) {
      this.#finish(reply.body);
      return;
    }
    const error = errorOf(reply.code, reply.reason, reply.message);
    // The server runs but is not ready; it did nothing.
    if (reply.code === Code.Unavailable) this.#again(error, false);
    else this.fail(error);
  }

  onBroken(why: string): void {
    const isUnknown = this.#wasSent;
    const error = unavailable(isUnknown ? `${why}; whether the call was done is not known` : why);
    if (!isUnknown && !this.#wasStale) {
      this.#wasStale = true;
      this.#attempt();
    } else if (!isUnknown || this.#request.isRepeatable) {
      this.#again(error, true);
    } else {
      this.fail(error);
    }
  }

  onRefused(error: Error): void {
    this.fail(error);
  }

  fail(error: Error): void {
    this.#finish(NOTHING, error);
  }

  #attempt(): void {
    this.#wasSent = false;
    this.#link.submit(this);
  }

  // The first retry after a broken connection is immediate: a restarted server is already back.
  #again(error: Error, isBroken: boolean): void {
    const isAtOnce = isBroken && !this.#backoff;
    this.#backoff ??= new Backoff();
    const wait = isAtOnce ? 0 : this.#backoff.next();
    if (now() + wait >= this.#retryUntil) this.fail(error);
    else this.#pauseTimer = setTimeout(() => this.#attempt(), wait);
  }

  // Timers do not keep the process alive. The link does while it has the call.
  #deadlineSet(): void {
    const left = this.#deadline - now();
    if (left === Number.POSITIVE_INFINITY) return;
    const onTime = () => {
      if (now() < this.#deadline) this.#deadlineSet();
      else this.fail(deadlineExceeded(this.#wasEverSent));
    };
    this.#deadlineTimer = setTimeout(onTime, timerMs(left)).unref();
  }

  // When the time for retries is over, a call that has been sent still waits for its reply.
  #patienceSet(): void {
    if (this.#retryUntil === this.#deadline) return;
    const onTime = () => {
      if (this.isPatient) this.#patienceSet();
      else if (!this.#wasSent && !this.#link.isOpen) this.fail(this.#link.refusal());
    };
    this.#patienceTimer = setTimeout(onTime, timerMs(this.#retryUntil - now())).unref();
  }

  readonly #onAbort = (): void => {
    this.fail(canceled(this.#request.signal?.reason));
  };

  #finish(body: Uint8Array, error?: Error): void {
    if (this.#isDone) return;
    this.#isDone = true;
    clearTimeout(this.#deadlineTimer);
    clearTimeout(this.#patienceTimer);
    clearTimeout(this.#pauseTimer);
    abortIgnore(this.#request.signal, this.#onAbort);
    if (error) this.#link.withdraw(this);
    this.#done(body, error);
  }
}

function timerMs(left: number): number {
  return Math.min(Math.max(Math.ceil(left), 1), TIMER_MS_MAX);
}
