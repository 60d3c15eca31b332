// The link to a server: at most one connection, the calls in flight on it, and a queue of waiting
// calls.
//
// It sends nothing twice. A call that ends before its reply occupies one of the 64 slots until the
// reply comes or the connection ends, because the server counts it. The link keeps the process
// alive only while a call waits.

import { type Address, distrustOf } from "./address.js";
import { Backoff, now } from "./backoff.js";
import { Connection, type Listener } from "./dial.js";
import { unavailable } from "./errors.js";
import { ID_BYTES, prefixBytes, prefixWrite, REP } from "./frame.js";

export const IN_FLIGHT_MAX = 64;

const UNSENT_BYTES_MAX = 1024 * 1024;
const JOIN_BYTES_MAX = 64 * 1024;
const STUCK_MS_MAX = 1000;
const ID_BIT = 0x80000000;
const ID_MASK = 0x7fffffff;

/** A call, as the link sees it. */
export interface Pending {
  /** Whether it waits for a server that is not running. Otherwise one failed attempt ends it. */
  readonly isPatient: boolean;
  /** Returns the size of its envelope, with the time that is left now. */
  size(): number;
  write(out: Buffer, at: number): void;
  /** It was sent, so the server may execute it. Called with false if it was not sent after all. */
  onSent(wasSent: boolean): void;
  onReply(envelope: Uint8Array): void;
  /** The connection broke after a part of it was sent. */
  onBroken(why: string): void;
  /** There is no connection. */
  onRefused(error: Error): void;
}

/** An encoded frame that is sent at the end of this turn of the event loop. */
interface Unsent {
  readonly pending: Pending;
  readonly frame: Buffer;
}

/** Why there is no connection. */
export interface ConnectFailure {
  readonly why: string;
  /** Nobody listens on the Unix socket. */
  readonly isAbsent?: boolean;
  /** The client tried to start tined and failed. */
  readonly cannotStart?: boolean;
}

export interface LinkOptions {
  readonly address: Address;
  /** Called when nobody listens; starts a server. */
  readonly start?: (() => Promise<void>) | undefined;
}

export class Link {
  readonly #options: LinkOptions;
  readonly #queue = new Set<Pending>();
  /** By id; undefined for a call that ended before its reply. */
  readonly #inFlight = new Map<number, Pending | undefined>();
  readonly #ids = new Map<Pending, number>();
  #connection: Connection | undefined;
  #isOpen = false;
  #isStarting = false;
  #wasStarted = false; // and there has been no connection since
  #hasReplied = false;
  #isHeld = true;
  #nextId = Math.floor(Math.random() * ID_BIT);
  readonly #backoff = new Backoff();
  #connectAfter = 0;
  #stuckTimer: NodeJS.Timeout | undefined;
  #connectTimer: NodeJS.Timeout | undefined;
  #willFlush = false;
  #unsentBytes = 0;
  #unsent: Unsent[] = [];
  #isClosed = false;

  /** The number of connections so far. */
  connections = 0;

  /** The last failed attempt to connect. */
  failure: ConnectFailure = { why: "it does not answer" };

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  submit(pending: Pending): void {
    this.#queue.add(pending);
    this.#pump();
  }

  /** Removes a call that has ended or will be submitted again. */
  withdraw(pending: Pending): void {
    this.#queue.delete(pending);
    const id = this.#ids.get(pending);
    if (id !== undefined) {
      this.#ids.delete(pending);
      const place = this.#unsent.findIndex((unsent) => unsent.pending === pending);
      if (place < 0) {
        this.#inFlight.set(id, undefined);
      } else {
        const [unsent] = this.#unsent.splice(place, 1);
        this.#unsentBytes -= unsent?.frame.length ?? 0;
        this.#inFlight.delete(id);
      }
    }
    if (this.#queue.size > 0) this.#pump();
    else this.#hold();
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** The error for calls that cannot wait for a connection any longer. */
  refusal(): Error {
    return unavailable(`no tined answers at ${this.#name}: ${this.failure.why}`);
  }

  /** Closes the connection. Calls in flight break; the next call reconnects. */
  disconnect(why: string): void {
    this.#connection?.destroy();
    if (this.#connection) this.#break(why, undefined);
  }

  /** Closes it for good. The caller ends the calls. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#connectTimer);
    clearTimeout(this.#stuckTimer);
    this.#connection?.destroy();
    this.#connection = undefined;
    this.#queue.clear();
    this.#inFlight.clear();
    this.#ids.clear();
  }

  get #name(): string {
    const { address } = this.#options;
    return address.framing === "ipc" ? address.path : `${address.host}:${address.port}`;
  }

  #pump(): void {
    if (this.#isClosed) return;
    if (!this.#connection) this.#connectWhenDue();
    while (this.#isOpen && this.#connection && this.#canSend() && this.#queue.size > 0) {
      if (this.#inFlight.size >= IN_FLIGHT_MAX) {
        if (this.#ids.size === 0) this.#stuckSet();
        break;
      }
      for (const pending of this.#queue) {
        this.#queue.delete(pending);
        this.#send(this.#connection, pending);
        break;
      }
    }
    this.#hold();
  }

  // Large frames wait in the queue, where they can be withdrawn, until the socket has sent the
  // others.
  #canSend(): boolean {
    return this.#unsentBytes < UNSENT_BYTES_MAX && this.#connection?.isFull === false;
  }

  // All 64 slots are occupied by calls that have ended. The server gets some time to answer one.
  #stuckSet(): void {
    this.#stuckTimer ??= setTimeout(() => {
      this.#stuckTimer = undefined;
      const isStuck = this.#inFlight.size >= IN_FLIGHT_MAX && this.#ids.size === 0;
      if (isStuck) this.disconnect("it answered none of its calls in time");
    }, STUCK_MS_MAX).unref();
  }

  #send(connection: Connection, pending: Pending): void {
    const id = this.#idTake();
    const { framing } = connection;
    const size = ID_BYTES + pending.size();
    const frame = Buffer.allocUnsafe(prefixBytes(framing) + size);
    const at = frame.writeUInt32BE(id, prefixWrite(frame, framing, size));
    pending.write(frame, at);
    this.#inFlight.set(id, pending);
    this.#ids.set(pending, id);
    // All frames of one turn of the event loop are sent by one system call.
    this.#unsent.push({ pending, frame });
    this.#unsentBytes += frame.length;
    if (this.#willFlush) return;
    this.#willFlush = true;
    process.nextTick(() => this.#flush());
  }

  #idTake(): number {
    do {
      this.#nextId = (this.#nextId + 1) & ID_MASK;
    } while (this.#inFlight.has((this.#nextId | ID_BIT) >>> 0));
    return (this.#nextId | ID_BIT) >>> 0;
  }

  #flush(): void {
    this.#willFlush = false;
    const unsent = this.#unsent;
    const bytes = this.#unsentBytes;
    this.#unsent = [];
    this.#unsentBytes = 0;
    if (this.#connection) this.#write(this.#connection, unsent, bytes);
    if (this.#queue.size > 0) this.#pump();
  }

  #write(connection: Connection, unsent: Unsent[], bytes: number): void {
    const [first] = unsent;
    for (const { pending } of unsent) pending.onSent(true);
    if (first && unsent.length === 1 && connection.isIdle) {
      // A stale connection fails at the first byte: then nothing was sent.
      connection.send(first.frame, (error) => {
        const { code } = (error ?? {}) as NodeJS.ErrnoException;
        if (code === "EPIPE") first.pending.onSent(false);
      });
    } else if (bytes <= JOIN_BYTES_MAX && first) {
      connection.send(Buffer.concat(unsent.map(({ frame }) => frame)), ignore);
    } else {
      for (const { frame } of unsent) connection.send(frame, ignore);
    }
  }

  #connectWhenDue(): void {
    if (this.#isStarting || this.#connectTimer || this.#queue.size === 0) return;
    const wait = this.#connectAfter - now();
    if (wait <= 0) {
      this.#connect();
      return;
    }
    this.#refuse();
    if (this.#queue.size === 0) return;
    this.#connectTimer = setTimeout(() => {
      this.#connectTimer = undefined;
      this.#pump();
    }, wait);
  }

  #connect(): void {
    const distrust = distrustOf(this.#options.address);
    if (distrust) {
      this.#fail({ why: distrust });
      this.#connectWhenDue();
      return;
    }
    this.#hasReplied = false;
    this.#isHeld = true;
    const listener: Listener = {
      onOpen: () => {
        this.#isOpen = true;
        this.#wasStarted = false;
        this.connections++;
        this.#pump();
      },
      onPayload: (payload) => this.#deliver(payload),
      onDrain: () => this.#pump(),
      onBroken: (why, code) => this.#break(why, code),
    };
    this.#connection = new Connection(this.#options.address, REP, listener);
  }

  #deliver(payload: Uint8Array): boolean {
    this.#hasReplied = true;
    this.#backoff.reset();
    const view = new DataView(payload.buffer, payload.byteOffset, ID_BYTES);
    const id = view.getUint32(0);
    const pending = this.#inFlight.get(id);
    if (!this.#inFlight.delete(id)) return true; // nobody waits for it
    if (pending) {
      this.#ids.delete(pending);
      pending.onReply(payload.subarray(ID_BYTES));
    }
    if (this.#queue.size > 0) this.#pump();
    else this.#hold();
    return true;
  }

  #break(why: string, code: string | undefined): void {
    const broken = [...this.#ids.keys()];
    const wasOpen = this.#isOpen;
    clearTimeout(this.#stuckTimer);
    this.#stuckTimer = undefined;
    this.#connection = undefined;
    this.#isOpen = false;
    this.#unsent = [];
    this.#unsentBytes = 0;
    this.#inFlight.clear();
    this.#ids.clear();
    const isIpc = this.#options.address.framing === "ipc";
    const isAbsent = isIpc && !wasOpen && (code === "ENOENT" || code === "ECONNREFUSED");
    if (isAbsent && this.#options.start && !this.#wasStarted) {
      this.#start(this.#options.start);
      return;
    }
    // A connection without any reply counts as a failed attempt. Otherwise the client would connect
    // in a loop to a server that accepts and hangs up.
    if (!this.#hasReplied) this.#fail({ why, isAbsent });
    for (const pending of broken) {
      pending.onBroken(`the connection to ${this.#name} broke before the reply came: ${why}`);
    }
    this.#pump();
  }

  #fail(failure: ConnectFailure): void {
    this.failure = failure;
    this.#connectAfter = now() + this.#backoff.next(failure.isAbsent);
    this.#refuse();
  }

  // Ends the calls that do not wait for a server.
  #refuse(): void {
    for (const pending of [...this.#queue]) {
      if (pending.isPatient) continue;
      this.#queue.delete(pending);
      pending.onRefused(this.refusal());
    }
  }

  #start(start: () => Promise<void>): void {
    this.#isStarting = true;
    const finish = (error?: Error) => {
      this.#isStarting = false;
      this.#wasStarted = !error;
      if (error) this.#fail({ why: error.message, cannotStart: true });
      this.#pump();
    };
    start().then(() => finish(), finish);
  }

  // Keeps the process alive while a call waits. Starting tined and backing off do so themselves.
  #hold(): void {
    const isWanted = this.#queue.size > 0 || this.#ids.size > 0;
    if (!isWanted && this.#connectTimer) {
      clearTimeout(this.#connectTimer);
      this.#connectTimer = undefined;
    }
    if (isWanted === this.#isHeld || !this.#connection) return;
    this.#isHeld = isWanted;
    this.#connection.ref(isWanted);
  }
}

function ignore(): void {}
