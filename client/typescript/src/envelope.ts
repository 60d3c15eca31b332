// Encodes and decodes the envelope of proto/tine/v1/rpc.proto. This is hand-written because every
// call needs it, and because it must not decode the body.

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
  /** "" in this and the other strings: absent. */
  readonly operationId: string;
  /** 0: no timeout. */
  readonly timeoutMs: number;
  readonly traceparent: string;
  readonly token: string;
  /** Answer after this write, and all before it, was flushed to disk. */
  readonly sync?: boolean;
  readonly body: Uint8Array;
}

export interface Reply {
  /** 0: success. */
  readonly code: Code | 0;
  readonly message: string;
  readonly reason: string;
  /** A view of the reply's bytes. */
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

const CODE_MAX = Code.Unauthenticated; // the last code of gRPC; others become UNKNOWN

const NOTHING = new Uint8Array(0);

/** Returns how many bytes `requestWrite` writes. */
export function requestSize(request: RequestFields): number {
  let size = textSize(request.method) + textSize(request.operationId);
  if (request.timeoutMs > 0) size += 1 + varintSize(request.timeoutMs);
  size += textSize(request.traceparent) + textSize(request.token);
  if (request.sync) size += 2;
  const { length } = request.body;
  return length === 0 ? size : size + 1 + varintSize(length) + length;
}

/** Encodes the Request to `out` at `at`. The fields are in the order of their numbers. */
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

/** Decodes a Response. Throws WireError if it is malformed. */
export function replyRead(bytes: Uint8Array): Reply {
  // Even a success is not encoded as nothing.
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

// A repeated status is merged, as protobuf specifies: absent fields keep their values.
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
