// The envelope of proto/tine/v1/rpc.proto, written and read by hand: it is around every call, and
// its body must stay the bytes that it is.

import { Code } from "@connectrpc/connect";
import {
  BYTES,
  FieldReader,
  textRead,
  VARINT,
  varintSize,
  varintWrite,
  WireError,
} from "./wire.js";

export interface RequestFields {
  /** `/tine.v1.StoreService/GetSession` */
  readonly method: string;
  /** "": none; so with all texts. */
  readonly operationId: string;
  /** 0: none. */
  readonly timeoutMs: number;
  readonly traceparent: string;
  readonly token: string;
  /** Answered when this, and all before it, is on the disk. */
  readonly sync?: boolean;
  readonly body: Uint8Array;
}

export interface Reply {
  /** 0: it succeeded. */
  readonly code: Code | 0;
  readonly message: string;
  readonly reason: string;
  /** Borrows from the reply's bytes. */
  readonly body: Uint8Array;
}

const METHOD = 1;
const OPERATION_ID = 2;
const TIMEOUT_MS = 3;
const TRACEPARENT = 4;
const TOKEN = 5;
const SYNC = 6;
const BODY = 15;

const STATUS = 1;
const STATUS_CODE = 1;
const STATUS_MESSAGE = 2;
const STATUS_REASON = 3;

type Writable<T> = { -readonly [K in keyof T]: T[K] };

const CODE_MAX = Code.Unauthenticated; // gRPC has no more; another is UNKNOWN

const NOTHING = new Uint8Array(0);

/** How many bytes `requestWrite` writes. */
export function requestSize(request: RequestFields): number {
  let size = textSize(request.method) + textSize(request.operationId);
  if (request.timeoutMs > 0) size += 1 + varintSize(request.timeoutMs);
  size += textSize(request.traceparent) + textSize(request.token);
  if (request.sync) size += 2;
  const { length } = request.body;
  return length === 0 ? size : size + 1 + varintSize(length) + length;
}

/** Writes the encoded Request to `out` at `at`: fields in the order of numbers, the body last. */
export function requestWrite(out: Buffer, at: number, request: RequestFields): void {
  let end = textWrite(out, at, METHOD, request.method);
  end = textWrite(out, end, OPERATION_ID, request.operationId);
  if (request.timeoutMs > 0) {
    out[end++] = (TIMEOUT_MS << 3) | VARINT;
    end = varintWrite(out, end, request.timeoutMs);
  }
  end = textWrite(out, end, TRACEPARENT, request.traceparent);
  end = textWrite(out, end, TOKEN, request.token);
  if (request.sync) {
    out[end++] = (SYNC << 3) | VARINT;
    out[end++] = 1;
  }
  if (request.body.length === 0) return;
  out[end++] = (BODY << 3) | BYTES;
  end = varintWrite(out, end, request.body.length);
  out.set(request.body, end);
}

function textSize(value: string): number {
  if (value === "") return 0;
  const size = Buffer.byteLength(value);
  return 1 + varintSize(size) + size;
}

function textWrite(out: Buffer, at: number, number: number, value: string): number {
  if (value === "") return at;
  out[at] = (number << 3) | BYTES;
  const end = varintWrite(out, at + 1, Buffer.byteLength(value));
  return end + out.write(value, end);
}

/** Reads an encoded Response. Throws WireError if the bytes are none. */
export function replyRead(bytes: Uint8Array): Reply {
  // A Response of no bytes says nothing, not even that all went well.
  if (bytes.length === 0) throw new WireError("the reply is empty");
  const fields = new FieldReader(bytes);
  const reply: Writable<Reply> = { code: 0, message: "", reason: "", body: NOTHING };
  while (fields.next()) {
    if (fields.type !== BYTES) continue;
    if (fields.number === BODY) reply.body = fields.bytes();
    else if (fields.number === STATUS) statusMerge(reply, fields.bytes());
  }
  const { code, body } = reply;
  return code === 0 ? { code, message: "", reason: "", body } : { ...reply, body: NOTHING };
}

// A status said twice is merged, as protobuf has it: what the second one leaves out stays.
function statusMerge(reply: Writable<Reply>, bytes: Uint8Array): void {
  const fields = new FieldReader(bytes);
  while (fields.next()) {
    if (fields.number === STATUS_CODE && fields.type === VARINT) {
      const code = Number(BigInt.asIntN(32, fields.value));
      reply.code = code >= 0 && code <= CODE_MAX ? code : Code.Unknown;
    } else if (fields.number === STATUS_MESSAGE && fields.type === BYTES) {
      reply.message = textRead(fields.bytes());
    } else if (fields.number === STATUS_REASON && fields.type === BYTES) {
      reply.reason = textRead(fields.bytes());
    }
  }
}
