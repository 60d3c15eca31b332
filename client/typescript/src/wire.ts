// The protobuf wire format, for the envelope and for the fields of events that a watch needs. It is
// as strict as the server: a tag has at most 5 bytes, a varint at most 64 bits, and groups are
// invalid.

import { isUtf8 } from "node:buffer";

export const VARINT = 0;
export const FIXED64 = 1;
export const BYTES = 2;
export const FIXED32 = 5;

const NUMBER_MAX = (1 << 29) - 1;
const TAG_BYTES_MAX = 5;
const VARINT_BYTES_MAX = 10;

/** The bytes are not a valid protobuf message. */
export class WireError extends Error {
  override name = "WireError";
}

/** Iterates over the fields of one message. */
export class FieldReader {
  /** The number of the current field. */
  number = 0;
  type = 0;
  /** The value of a VARINT field. */
  value = 0n;
  /** The bounds of the content of a BYTES field. */
  start = 0;
  end = 0;

  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Moves to the next field. Returns false at the end. */
  next(): boolean {
    if (this.#at === this.#bytes.length) return false;
    const before = this.#at;
    const tag = this.#small();
    if (this.#at - before > TAG_BYTES_MAX) throw new WireError("a tag is too long");
    this.number = Math.floor(tag / 8);
    this.type = tag % 8;
    if (this.number === 0 || this.number > NUMBER_MAX) throw new WireError("invalid field number");
    this.#content();
    return true;
  }

  /** The content of a BYTES field, as a view of the message. */
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
        throw new WireError("invalid wire type");
    }
  }

  #skip(size: number): void {
    if (size > this.#bytes.length - this.#at) throw new WireError("a field is cut off");
    this.start = this.#at;
    this.#at += size;
    this.end = this.#at;
  }

  // A varint as a number. Above 2^53 it is not exact, but larger than any valid length.
  #small(): number {
    const first = this.#bytes[this.#at];
    if (first !== undefined && first < 0x80) {
      this.#at++;
      return first;
    }
    return Number(this.#varint());
  }

  #varint(): bigint {
    let low = 0; // the lowest 28 bits; `value` holds the rest
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

// A leading U+FEFF is part of the text.
const text = new TextDecoder("utf-8", { ignoreBOM: true });

/** Throws WireError if the content of a string field is not UTF-8. */
export function textCheck(bytes: Uint8Array): void {
  if (!isUtf8(bytes)) throw new WireError("a string is not UTF-8");
}

/** Decodes the content of a string field. Throws WireError. */
export function textRead(bytes: Uint8Array): string {
  textCheck(bytes);
  return text.decode(bytes);
}

export function varintSize(value: number): number {
  let size = 1;
  for (let left = value; left >= 0x80; left = Math.floor(left / 0x80)) size++;
  return size;
}

/** Writes a varint at `at`. Returns where it ends. */
export function varintWrite(out: Uint8Array, at: number, value: number): number {
  let end = at;
  let left = value;
  for (; left >= 0x80; left = Math.floor(left / 0x80)) out[end++] = (left % 0x80) | 0x80;
  out[end++] = left;
  return end;
}
