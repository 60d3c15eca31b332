// Servers that violate the protocol: every call ends by its deadline and leaks nothing.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Code, createClient } from "@connectrpc/connect";
import { createTransport } from "@tine-store/client";
import { StoreService } from "@tine-store/client/v1";
import { failureOf, Peer } from "./daemon.js";
import { settled } from "./leaks.js";

const CALLS = 20;

// The codes with which a call may end.
const modes: Record<string, Code[]> = {
  garbage: [Code.Unavailable],
  "bad-hello": [Code.Unavailable],
  "half-hello": [Code.DeadlineExceeded],
  silent: [Code.DeadlineExceeded],
  "hello-then-silent": [Code.DeadlineExceeded],
  "hang-up": [Code.Unavailable],
  "hang-up-after-hello": [Code.Unavailable],
  "hang-up-on-request": [Code.Unavailable],
  // After half a frame, the next reply is read as its rest, so anything may follow.
  "half-frame": [Code.DeadlineExceeded, Code.Internal, Code.Unavailable],
  "half-frame-close": [Code.Unavailable, Code.Internal],
  "length-bomb": [Code.Unavailable],
  "length-huge": [Code.Unavailable],
  "length-over": [Code.Unavailable],
  "wrong-id": [Code.DeadlineExceeded],
  "no-id": [Code.Unavailable],
  "garbage-reply": [Code.Internal],
  flood: [Code.DeadlineExceeded],
};

for (const [mode, expected] of Object.entries(modes)) {
  test(`${mode}: calls and watches end, and nothing is kept`, async (context) => {
    const peer = await Peer.start(mode);
    context.after(() => peer.stop());
    const before = await settled();
    for (const retryMs of [0, 60_000]) {
      const transport = createTransport(peer.url, { retryMs });
      const tine = createClient(StoreService, transport);
      // A call with retries ends at its deadline, with the last error.
      const codes = retryMs > 0 ? [...expected, Code.Unavailable, Code.DeadlineExceeded] : expected;
      // Long, unless it is the deadline that ends the call.
      const timeoutMs = codes.includes(Code.DeadlineExceeded) ? 200 : 60_000;
      const calls = Array.from({ length: CALLS }, () =>
        failureOf(tine.getSession({ sessionId: "x" }, { timeoutMs })),
      );
      for (const { code } of await Promise.all(calls)) assert.ok(codes.includes(code), Code[code]);
      const events = tine.watchEvents({}, { timeoutMs })[Symbol.asyncIterator]();
      const { code } = await failureOf(events.next());
      assert.ok([...codes, Code.Unavailable].includes(code), Code[code]);
      transport.close();
    }
    assert.deepEqual(await settled(), before);
  });
}

test("twice: a second reply is dropped", async () => {
  const peer = await Peer.start("twice");
  const transport = createTransport(peer.url);
  const tine = createClient(StoreService, transport);
  for (let i = 0; i < CALLS; i++) {
    await Promise.all([tine.getSession({ sessionId: "x" }), tine.getSession({ sessionId: "y" })]);
  }
  transport.close();
  await peer.stop();
});

let status: Peer;
before(async () => {
  status = await Peer.start("status");
});
after(() => status.stop());

test("calls that are cancelled in every state leave nothing", async () => {
  const transport = createTransport(status.url);
  const tine = createClient(StoreService, transport);
  await tine.getSession({ sessionId: "x" });
  const before = await settled();
  const { signal } = new AbortController();
  for (let round = 0; round < 20; round++) {
    const stop = new AbortController();
    const calls = Array.from({ length: 100 }, (_, i) => {
      const any = i % 2 ? stop.signal : AbortSignal.any([stop.signal, signal]);
      return failureOf(
        tine.getSession({ sessionId: "delay:20" }, { signal: any, timeoutMs: 60_000 }),
      );
    });
    if (round % 2) await new Promise((done) => setImmediate(done));
    stop.abort();
    for (const { code } of await Promise.all(calls)) assert.equal(code, Code.Canceled);
  }
  await tine.getSession({ sessionId: "x" });
  assert.deepEqual(await settled(), before);
  transport.close();
});
