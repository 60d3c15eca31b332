// The wire format, checked with the vectors for all clients (tests/wire/vectors.json).

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { EventSchema } from "@tine-store/client/v1";
import { replyRead, requestSize, requestWrite } from "../src/envelope.js";
import {
  FrameError,
  FrameReader,
  type Framing,
  isHelloOf,
  PUB,
  prefixBytes,
  prefixWrite,
  REP,
} from "../src/frame.js";
import { messageRead } from "../src/watch.js";
import { ROOT } from "./daemon.js";

type Bytes = string | { repeat: string; count: number };
interface Vectors {
  hellos: { name: string; client: "req" | "sub"; hex: string; ok: boolean }[];
  frames: {
    name: string;
    transport: Framing;
    hex: string;
    payloads: Bytes[];
    then: "more" | "error" | "end";
  }[];
  requests: {
    name: string;
    method: string;
    operation_id: string;
    timeout_ms: number;
    traceparent: string;
    token: string;
    body: string;
    hex: string;
  }[];
  responses: {
    name: string;
    hex: string;
    ok: boolean;
    code: number;
    message: string;
    reason: string;
    body: string;
  }[];
  events: {
    name: string;
    hex: string;
    ok: boolean;
    topic: string;
    sequence: string;
    type: string;
    session_id: string;
  }[];
}

// Sequences may be too large for a double.
const file = readFileSync(`${ROOT}/tests/wire/vectors.json`, "utf8");
const vectors: Vectors = JSON.parse(file.replace(/"sequence": (\d+)/g, '"sequence": "$1"'));

function bytesOf(value: Bytes): Buffer {
  if (typeof value === "string") return Buffer.from(value, "hex");
  return Buffer.alloc(value.count, value.repeat, "hex");
}

for (const { name, client, hex, ok } of vectors.hellos) {
  test(`hello ${name}`, () => {
    assert.equal(isHelloOf(bytesOf(hex), client === "req" ? REP : PUB), ok);
  });
}

/** Decodes the bytes in chunks of `size`. */
function framesOf(bytes: Buffer, framing: Framing, size: number) {
  const reader = new FrameReader(framing);
  const payloads: string[] = [];
  const chunk = Buffer.alloc(Math.min(size, bytes.length)); // reused, like a socket's buffer
  try {
    for (let at = 0; at < bytes.length; at += size) {
      const count = bytes.copy(chunk, 0, at, at + size);
      reader.take(chunk.subarray(0, count), (payload) => {
        payloads.push(Buffer.from(payload).toString("hex"));
      });
    }
  } catch (error) {
    assert.ok(error instanceof FrameError);
    return { payloads, end: "error" };
  }
  return { payloads, end: reader.isBetweenFrames ? "end" : "more" };
}

for (const { name, transport, hex, payloads, then: end } of vectors.frames) {
  test(`frames ${name}`, () => {
    const bytes = bytesOf(hex);
    const expected = { payloads: payloads.map((bytes) => bytesOf(bytes).toString("hex")), end };
    assert.deepEqual(framesOf(bytes, transport, Math.max(bytes.length, 1)), expected);
    for (const size of bytes.length < 10_000 ? [1, 2, 3, 7] : [4096]) {
      assert.deepEqual(framesOf(bytes, transport, size), expected, `in chunks of ${size}`);
    }
  });
}

test("memory for a frame is taken once, as its length says", () => {
  const size = 4_000_000;
  const bytes = Buffer.alloc(prefixBytes("ipc") + size, 7);
  prefixWrite(bytes, "ipc", size);
  const reader = new FrameReader("ipc");
  const payloads: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += 65_536) {
    reader.take(bytes.subarray(at, at + 65_536), (payload) => payloads.push(payload));
  }
  assert.deepEqual(
    payloads.map(({ buffer }) => buffer.byteLength),
    [size],
  );
});

for (const vector of vectors.requests) {
  test(`request ${vector.name}`, () => {
    const request = {
      method: vector.method,
      operationId: vector.operation_id,
      timeoutMs: vector.timeout_ms,
      traceparent: vector.traceparent,
      token: vector.token,
      body: bytesOf(vector.body),
    };
    const out = Buffer.alloc(requestSize(request));
    requestWrite(out, 0, request);
    assert.equal(out.toString("hex"), vector.hex);
  });
}

for (const { name, hex, ok, code, message, reason, body } of vectors.responses) {
  test(`response ${name}`, () => {
    if (!ok) {
      assert.throws(() => replyRead(bytesOf(hex)), { name: "WireError" });
      return;
    }
    const reply = replyRead(bytesOf(hex));
    assert.deepEqual(
      { ...reply, body: Buffer.from(reply.body).toString("hex") },
      { code, message, reason, body },
    );
  });
}

for (const { name, hex, ok, topic, sequence, type, session_id } of vectors.events) {
  test(`event ${name}`, () => {
    const bytes = bytesOf(hex);
    if (!ok) {
      assert.throws(() => messageRead(bytes), { name: "WireError" });
      return;
    }
    const { topic: said, head, event: encoded } = messageRead(bytes);
    assert.equal(said, topic);
    assert.equal(head.sequence, BigInt(sequence));
    assert.equal(head.type, type);
    const event = fromBinary(EventSchema, encoded);
    assert.equal(event.sessionId, session_id);
    assert.equal(event.sequence, head.sequence);
  });
}

test("noise never does more than it may", () => {
  // xorshift32: deterministic noise
  let state = 0x9e3779b9;
  const random = (below: number) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
  const good = vectors.responses.map(({ hex }) => bytesOf(hex));
  for (let round = 0; round < 10_000; round++) {
    const bytes = Buffer.from(good[random(good.length)] ?? []);
    for (let changes = random(4); changes > 0 && bytes.length > 0; changes--) {
      bytes[random(bytes.length)] = random(256);
    }
    try {
      replyRead(bytes.subarray(0, random(bytes.length + 1)));
    } catch (error) {
      assert.equal((error as Error).name, "WireError");
    }
    const frame = Buffer.concat([Buffer.from([1, 0, 0, 0, 0, 0, 0, random(3), random(40)]), bytes]);
    frame[[0, 1, 7, 8][random(4)] ?? 0] = random(3);
    try {
      new FrameReader("ipc").take(frame.subarray(0, random(frame.length + 1)), () => {});
    } catch (error) {
      assert.equal((error as Error).name, "FrameError");
    }
  }
});
