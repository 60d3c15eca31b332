// One connection: the socket, the exchange of hellos, and the payloads.
//
// The socket reads into one buffer, which is reused (net's `onread`). So a chunk is valid only
// until its callback returns; FrameReader copies what it keeps.

import { type Socket, connect as socketConnect } from "node:net";
import type { Address } from "./address.js";
import {
  FrameError,
  FrameReader,
  type Framing,
  HELLO_BYTES,
  helloOf,
  ID_BYTES,
  isHelloOf,
  REP,
} from "./frame.js";

const REQ = 0x30;
const SUB = 0x21;
const INBOX_BYTES = 64 * 1024;
const HELLO_MS_MAX = 5000;

export interface Listener {
  /** The hellos have been exchanged. */
  onOpen(): void;
  /** Returns false to stop reading until `resume`. */
  onPayload(payload: Uint8Array): boolean;
  onDrain(): void;
  /** Called once, when the connection or the attempt to connect fails. `code`: as in ENOENT. */
  onBroken(why: string, code: string | undefined): void;
}

export class Connection {
  readonly framing: Framing;
  readonly #listener: Listener;
  readonly #server: number;
  readonly #reader: FrameReader;
  readonly #socket: Socket;
  readonly #hello = Buffer.alloc(HELLO_BYTES);
  readonly #timer: NodeJS.Timeout;
  #helloSize = 0;
  #isBroken = false;
  #wantsMore = true;

  /** Connects to a server of requests (`server` is REP) or events (PUB). */
  constructor(address: Address, server: number, listener: Listener) {
    this.framing = address.framing;
    this.#listener = listener;
    this.#server = server;
    this.#reader = new FrameReader(address.framing);
    const onread = {
      buffer: Buffer.allocUnsafeSlow(INBOX_BYTES),
      callback: (size: number, inbox: Uint8Array) => this.#receive(inbox.subarray(0, size)),
    };
    this.#socket =
      address.framing === "ipc"
        ? socketConnect({ path: address.path, onread })
        : socketConnect({ host: address.host, port: address.port, noDelay: true, onread });
    this.#timer = setTimeout(() => this.#end("it did not say hello"), HELLO_MS_MAX).unref();
    this.#socket.on("error", (error: NodeJS.ErrnoException) =>
      this.#end(error.message, error.code),
    );
    this.#socket.on("end", () => this.#end(this.#endWords()));
    this.#socket.on("close", () => this.#end(this.#endWords()));
    this.#socket.on("drain", () => this.#listener.onDrain());
    this.#socket.write(helloOf(server === REP ? REQ : SUB));
  }

  /** Sets whether the socket keeps the process alive. */
  ref(isWanted: boolean): void {
    if (isWanted) this.#socket.ref();
    else this.#socket.unref();
  }

  /** Whether the send buffer is full. */
  get isFull(): boolean {
    return this.#socket.writableNeedDrain;
  }

  /** Whether the send buffer is empty. */
  get isIdle(): boolean {
    return this.#socket.writableLength === 0;
  }

  /** `onWritten` is called with the error, if there is one. */
  send(bytes: Uint8Array, onWritten: (error?: Error | null) => void): void {
    this.#socket.write(bytes, onWritten);
  }

  resume(): void {
    this.#wantsMore = true;
    this.#socket.resume();
  }

  /** Closes it without calling the listener. */
  destroy(): void {
    this.#isBroken = true;
    clearTimeout(this.#timer);
    this.#socket.destroy();
  }

  #endWords(): string {
    return this.#helloSize < HELLO_BYTES ? "it hung up before it said hello" : "it hung up";
  }

  #end(why: string, code?: string): void {
    if (this.#isBroken) return;
    this.destroy();
    this.#listener.onBroken(why, code);
  }

  // The result is for net's `onread`: false pauses the socket.
  #receive(chunk: Uint8Array): boolean {
    let rest = chunk;
    if (this.#helloSize < HELLO_BYTES) {
      const taken = rest.subarray(0, HELLO_BYTES - this.#helloSize);
      this.#hello.set(taken, this.#helloSize);
      this.#helloSize += taken.length;
      rest = rest.subarray(taken.length);
      if (this.#helloSize === HELLO_BYTES) this.#open();
    }
    try {
      if (!this.#isBroken) this.#reader.take(rest, this.#onPayload);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#end(error.message);
    }
    return this.#wantsMore && !this.#isBroken;
  }

  readonly #onPayload = (payload: Uint8Array): void => {
    if (this.#isBroken) return;
    if (this.#server === REP && payload.length < ID_BYTES) {
      throw new FrameError("it sent a reply without an id");
    }
    if (!this.#listener.onPayload(payload)) this.#wantsMore = false;
  };

  #open(): void {
    if (!isHelloOf(this.#hello, this.#server)) {
      const name = this.#server === REP ? "REP" : "PUB";
      this.#end(`the listening socket is not a ${name} socket`);
      return;
    }
    clearTimeout(this.#timer);
    this.#listener.onOpen();
  }
}
