// The protobuf wire format, for what the client reads and writes itself: the envelope, and of the
// events what a watch must know before it decodes them. As strict as the server's own reader: a
// tag has at most 5 bytes and a varint at most 64 bits, and there are no groups.

import { isUtf8 } from "node:buffer";

export const VARINT = 0;
export const FIXED64 = 1;
export const BYTES = 2;
export const FIXED32 = 5;

const NUMBER_MAX = (1 << 29) - 1;
const TAG_BYTES_MAX = 5;
const VARINT_BYTES_MAX = 10;

/** Bytes that are no protobuf message. */
export class WireError extends Error {
  override name = "WireError";
}

/** Steps through the fields of one message. */
export class FieldReader {
  /** Of the field that `next` came to. */
  number = 0;
  type = 0;
  /** The value of a VARINT or a fixed field. */
  value = 0n;
  /** Where a BYTES field's content begins and ends. */
  start = 0;
  end = 0;

  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Goes to the next field. False: there is none. */
  next(): boolean {
    if (this.#at === this.#bytes.length) return false;
    const before = this.#at;
    const tag = this.#small();
    if (this.#at - before > TAG_BYTES_MAX) throw new WireError("a tag is too long");
    this.number = Math.floor(tag / 8);
    this.type = tag % 8;
    if (this.number === 0 || this.number > NUMBER_MAX) throw new WireError("no field's number");
    this.#content();
    return true;
  }

  /** The content of a BYTES field; borrows from the message. */
  bytes(): Uint8Array {
    return this.#bytes.subarray(this.start, this.end);
  }

  #content(): void {
    switch (this.type) {
      case VARINT:
        this.value = this.#varint();
        return;
      case FIXED64:
        this.#skip(8);
        return;
      case FIXED32:
        this.#skip(4);
        return;
      case BYTES:
        this.#skip(this.#small());
        return;
      default:
        throw new WireError("no type of a field");
    }
  }

  #skip(size: number): void {
    if (size > this.#bytes.length - this.#at) throw new WireError("a field is cut off");
    this.start = this.#at;
    this.#at += size;
    this.end = this.#at;
  }

  // A varint as a number: exact up to 2^53, and far more than any length beyond it.
  #small(): number {
    const first = this.#bytes[this.#at];
    if (first !== undefined && first < 0x80) {
      this.#at++;
      return first;
    }
    return Number(this.#varint());
  }

  #varint(): bigint {
    let low = 0; // 28 bits, then what is above them
    let value = 0n;
    for (let i = 0; i < VARINT_BYTES_MAX; i++) {
      const byte = this.#bytes[this.#at + i];
      if (byte === undefined) throw new WireError("a varint is cut off");
      if (i === VARINT_BYTES_MAX - 1 && byte > 1) break;
      if (i < 4) low += (byte & 0x7f) << (7 * i);
      else value |= BigInt(byte & 0x7f) << BigInt(7 * i);
      if (byte < 0x80) {
        this.#at += i + 1;
        return value | BigInt(low);
      }
    }
    throw new WireError("a varint has more than 64 bits");
  }
}

// A U+FEFF in front of a text is one of its characters.
const text = new TextDecoder("utf-8", { ignoreBOM: true });

/** Checks that the content of a string field is UTF-8: else the message is malformed. */
export function textCheck(bytes: Uint8Array): void {
  if (!isUtf8(bytes)) throw new WireError("a text is no UTF-8");
}

/** The content of a string field. */
export function textRead(bytes: Uint8Array): string {
  textCheck(bytes);
  return text.decode(bytes);
}

export function varintSize(value: number): number {
  let size = 1;
  for (let left = value; left >= 0x80; left = Math.floor(left / 0x80)) size++;
  return size;
}

/** Writes a varint at `at` and returns where it ends. */
export function varintWrite(out: Uint8Array, at: number, value: number): number {
  let end = at;
  let left = value;
  for (; left >= 0x80; left = Math.floor(left / 0x80)) out[end++] = (left % 0x80) | 0x80;
  out[end++] = left;
  return end;
}
