// The SP wire format (docs/wire.md): a hello of eight bytes, then frames. Received bytes are copied
// once, from the socket's buffer to the payload, which is allocated as the frame's length says.

export type Framing = "ipc" | "tcp";

/** The protocol in a peer's hello. */
export const REP = 0x31;
export const PUB = 0x20;

export const HELLO_BYTES = 8;
/** The payload of a request or reply begins with its id; the envelope follows. */
export const ID_BYTES = 4;
/** A page of 16 MiB with its envelope. */
export const PAYLOAD_BYTES_MAX = 16 * 1024 * 1024 + 64 * 1024;

const FRAME_TYPE = 1; // the first byte of each frame on ipc
const LENGTH_BYTES = 8;

/** The peer violated the format; the connection is unusable. */
export class FrameError extends Error {
  override name = "FrameError";
}

export function helloOf(protocol: number): Uint8Array {
  return Uint8Array.of(0, 0x53, 0x50, 0, protocol >> 8, protocol & 0xff, 0, 0);
}

/** Whether the bytes are the hello of this protocol. */
export function isHelloOf(bytes: Uint8Array, protocol: number): boolean {
  return Buffer.compare(bytes, helloOf(protocol)) === 0;
}

/** Returns the size of a frame's header. */
export function prefixBytes(framing: Framing): number {
  return framing === "ipc" ? 1 + LENGTH_BYTES : LENGTH_BYTES;
}

/** Writes the header for a payload of `size` bytes. Returns where it ends. */
export function prefixWrite(out: Buffer, framing: Framing, size: number): number {
  let at = 0;
  if (framing === "ipc") out[at++] = FRAME_TYPE;
  out.writeUInt32BE(Math.floor(size / 2 ** 32), at);
  return out.writeUInt32BE(size >>> 0, at + 4);
}

/** Assembles payloads from the chunks that a socket receives. */
export class FrameReader {
  readonly #framing: Framing;
  readonly #prefix: Buffer;
  #prefixSize = 0;
  #payload: Uint8Array | undefined;
  #payloadSize = 0;

  constructor(framing: Framing) {
    this.#framing = framing;
    this.#prefix = Buffer.alloc(prefixBytes(framing));
  }

  /** Whether the last chunk ended at the end of a frame. */
  get isBetweenFrames(): boolean {
    return this.#prefixSize === 0 && this.#payload === undefined;
  }

  /** Copies `chunk` and calls `onPayload` for each payload that it completes. */
  take(chunk: Uint8Array, onPayload: (payload: Uint8Array) => void): void {
    let at = 0;
    while (at < chunk.length || this.#isComplete()) {
      if (this.#payload === undefined) {
        at = this.#takePrefix(chunk, at);
        continue;
      }
      const count = Math.min(this.#payload.length - this.#payloadSize, chunk.length - at);
      if (count > 0) this.#payload.set(chunk.subarray(at, at + count), this.#payloadSize);
      this.#payloadSize += count;
      at += count;
      if (!this.#isComplete()) continue;
      const payload = this.#payload;
      this.#payload = undefined;
      onPayload(payload);
    }
  }

  #isComplete(): boolean {
    return this.#payload !== undefined && this.#payloadSize === this.#payload.length;
  }

  #takePrefix(chunk: Uint8Array, start: number): number {
    const missing = this.#prefix.length - this.#prefixSize;
    const end = Math.min(start + missing, chunk.length);
    this.#prefix.set(chunk.subarray(start, end), this.#prefixSize);
    this.#prefixSize += end - start;
    if (this.#prefixSize === this.#prefix.length) {
      this.#prefixSize = 0;
      this.#payload = new Uint8Array(this.#lengthRead());
      this.#payloadSize = 0;
    }
    return end;
  }

  #lengthRead(): number {
    const at = this.#framing === "ipc" ? 1 : 0;
    if (at === 1 && this.#prefix[0] !== FRAME_TYPE) {
      throw new FrameError("it sent an invalid SP frame");
    }
    const length = this.#prefix.readUInt32BE(at) * 2 ** 32 + this.#prefix.readUInt32BE(at + 4);
    if (length > PAYLOAD_BYTES_MAX) throw new FrameError("it sent a reply that is too long");
    return length;
  }
}
