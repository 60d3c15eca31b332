// WatchEvents of a tined.

import assert from "node:assert/strict";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Code, createClient } from "@connectrpc/connect";
import { closeOnBreak, reason } from "@tine-store/client";
import { type Event, StoreService, WatchStart } from "@tine-store/client/v1";
import {
  appendOf,
  createSession,
  Daemon,
  failureOf,
  Peer,
  type Tine,
  temporary,
} from "./daemon.js";
import { settled } from "./leaks.js";
import { watching } from "./watching.js";

let daemon: Daemon;
let tine: Tine;

before(async () => {
  daemon = await Daemon.run("--ephemeral");
  tine = daemon.client();
});
after(() => daemon.close());

function sequencesOf(events: Event[]): bigint[] {
  return events.map(({ sequence }) => sequence);
}

function assertNoGap(events: Event[]): void {
  const [first] = events;
  const expected = events.map((_, i) => (first?.sequence ?? 0n) + BigInt(i));
  assert.deepEqual(sequencesOf(events), expected);
}

test("a watch from the oldest catches up and goes on, without gap or double", async () => {
  const sessionId = await createSession(tine);
  for (let i = 0; i < 20; i++) await tine.appendMessage(appendOf(sessionId, `${i}`));
  const watch = await watching(tine, { start: WatchStart.OLDEST });
  const old = await watch.take(21);
  const more = Array.from({ length: 20 }, () => tine.appendMessage(appendOf(sessionId, "x")));
  await Promise.all(more);
  const all = [...old, ...(await watch.take(20))];
  assert.equal(all[0]?.sequence, 1n);
  assertNoGap(all);
  watch.end();
});

test("a watch from now on shows what comes after it began", async () => {
  const sessionId = await createSession(tine, "now");
  const watch = await watching(tine, {});
  const { receipt } = await tine.appendMessage(appendOf(sessionId, "x"));
  const [event] = await watch.take(1);
  assert.equal(event?.type, "message.appended");
  assert.equal(event?.messageId, receipt?.id);
  watch.end();
});

test("a watch after a sequence goes on there", async () => {
  const sessionId = await createSession(tine);
  const { events } = await tine.listEvents({ sessionId });
  const afterSequence = events[0]?.sequence ?? 0n;
  const instanceId = events[0]?.instanceId ?? "";
  await tine.renameSession({ sessionId, slug: "after" });
  const watch = await watching(tine, { start: WatchStart.AFTER, afterSequence, instanceId });
  assert.deepEqual(sequencesOf(await watch.take(1)), [afterSequence + 1n]);
  watch.end();
});

test("a watch of a session shows only its events, of a type only those", async () => {
  const [mine, other] = [await createSession(tine), await createSession(tine)];
  const session = await watching(tine, { sessionId: mine });
  const types = await watching(tine, { typePrefix: "session." });
  for (let i = 0; i < 10; i++) {
    await tine.appendMessage(appendOf(other, "x"));
    await tine.appendMessage(appendOf(mine, "y"));
  }
  await tine.renameSession({ sessionId: mine, slug: "named" });
  const seen = await session.take(11);
  assert.ok(seen.every(({ sessionId }) => sessionId === mine));
  const [renamed] = await types.take(1);
  assert.equal(renamed?.sequence, seen.at(-1)?.sequence);
  session.end();
  types.end();
});

test("broadcast events come between the others, in order", async () => {
  const sessionId = await createSession(tine);
  const watch = await watching(tine, { sessionId });
  for (let i = 0; i < 10; i++) {
    await tine.broadcastEvent({ sessionId, type: "text", dataJson: `${i}` });
    await tine.publishEvent({ sessionId, type: "step", dataJson: `${i}` });
  }
  const seen = (await watch.take(20)).map(({ type, dataJson }) => `${type} ${dataJson}`);
  assert.deepEqual(
    seen,
    Array.from({ length: 20 }, (_, i) => `${i % 2 ? "step" : "text"} ${Math.floor(i / 2)}`),
  );
  watch.end();
});

test("a watch of a session that is purged ends NOT_FOUND", async () => {
  const sessionId = await createSession(tine);
  const watch = await watching(tine, { sessionId });
  await tine.purgeSession({ sessionId });
  const error = await failureOf(watch.take(2));
  assert.equal(error.code, Code.NotFound);
  assert.equal(reason(error), "SESSION_NOT_FOUND");
});

test("a watch of a session that is none, or of another store, does not begin", async () => {
  const none = tine.watchEvents({ sessionId: "01ARZ3NDEKTSV4RRFFQ69G5FAV" });
  const error = await failureOf(none[Symbol.asyncIterator]().next());
  assert.equal(reason(error), "SESSION_NOT_FOUND");
  const instanceId = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
  const other = tine.watchEvents({ start: WatchStart.AFTER, afterSequence: 1n, instanceId });
  const changed = await failureOf(other[Symbol.asyncIterator]().next());
  assert.equal(changed.code, Code.OutOfRange);
  assert.equal(reason(changed), "STORE_CHANGED");
});

test("a watch ends CANCELED by its signal, at its deadline, and with the transport", async () => {
  const stop = new AbortController();
  const aborted = tine.watchEvents({}, { signal: stop.signal })[Symbol.asyncIterator]().next();
  setTimeout(() => stop.abort(), 100);
  assert.equal((await failureOf(aborted)).code, Code.Canceled);

  const late = tine.watchEvents({}, { timeoutMs: 100 })[Symbol.asyncIterator]().next();
  assert.equal((await failureOf(late)).code, Code.DeadlineExceeded);

  const transport = daemon.transport();
  const closed = createClient(StoreService, transport).watchEvents({});
  const next = closed[Symbol.asyncIterator]().next();
  setTimeout(() => transport.close(), 100);
  const error = await failureOf(next);
  assert.equal(error.code, Code.Canceled);
  assert.equal(error.rawMessage, "the client is closed");
});

test("a deadline may be years away", async () => {
  const timeoutMs = 10 ** 12;
  await tine.health({}, { timeoutMs });
  const start = WatchStart.OLDEST;
  const events = closeOnBreak((signal) => tine.watchEvents({ start }, { timeoutMs, signal }));
  assert.ok((await events.next()).value?.event);
  await events.return?.();
});

test("a transport that was closed opens no watch, in whatever turn", async () => {
  const transport = daemon.transport();
  const events = createClient(StoreService, transport).watchEvents({});
  transport.close();
  const error = await failureOf(events[Symbol.asyncIterator]().next());
  assert.equal(error.rawMessage, "the client is closed");
});

test("a watch that ended keeps nothing, however it ended", async () => {
  const sessionId = await createSession(tine);
  const before = await settled();
  for (let i = 0; i < 10; i++) {
    for await (const _ of closeOnBreak((signal) =>
      tine.watchEvents({ sessionId, start: WatchStart.OLDEST }, { signal }),
    )) {
      break;
    }
    const stop = new AbortController();
    const events = tine.watchEvents({ sessionId }, { signal: stop.signal });
    setTimeout(() => stop.abort(), 20);
    await failureOf(events[Symbol.asyncIterator]().next());
    stop.abort();
  }
  assert.deepEqual(await settled(), before);
});

test("64 watches on one transport leave room for calls", async () => {
  const sessionId = await createSession(tine);
  const watches = await Promise.all(
    Array.from({ length: 64 }, () => watching(tine, { sessionId })),
  );
  await tine.publishEvent({ sessionId, type: "go" });
  for (const watch of watches) {
    assert.equal((await watch.take(1))[0]?.type, "go");
    watch.end();
  }
});

test("a burst of 3000 events is seen whole", async () => {
  const sessionId = await createSession(tine);
  const watch = await watching(tine, { sessionId });
  const seen = watch.take(3000);
  await Promise.all(
    Array.from({ length: 3000 }, (_, i) =>
      tine.publishEvent({ sessionId, type: "step", dataJson: `${i}` }),
    ),
  );
  assertNoGap(await seen);
  watch.end();
});

test("a watch that does not read for 12 000 events misses none", async () => {
  const sessionId = await createSession(tine);
  const watch = await watching(tine, { sessionId });
  const dataJson = JSON.stringify("x".repeat(200));
  await tine.publishEvent({ sessionId, type: "step", dataJson });
  await watch.take(1);
  for (let i = 0; i < 12; i++) {
    await Promise.all(
      Array.from({ length: 1000 }, () => tine.publishEvent({ sessionId, type: "step", dataJson })),
    );
  }
  assertNoGap(await watch.take(12_000));
  watch.end();
});

for (const mode of [
  "garbage",
  "bad-hello",
  "half-hello",
  "silent",
  "hello-then-silent",
  "hang-up",
  "hang-up-after-hello",
  "half-frame",
  "length-bomb",
  "flood",
]) {
  test(`a bus that is no bus (${mode}) costs a watch nothing`, async () => {
    const directory = temporary();
    const socket = join(directory, "tine.sock");
    symlinkSync(daemon.socket, socket);
    const bus = await Peer.start(mode, join(directory, "tine.events"));
    try {
      const client = daemon.client({}, `ipc://${socket}`);
      const sessionId = await createSession(tine);
      const watch = await watching(client, { sessionId });
      await Promise.all(
        Array.from({ length: 50 }, () => tine.publishEvent({ sessionId, type: "step" })),
      );
      assertNoGap(await watch.take(50));
      watch.end();
    } finally {
      await bus.stop();
    }
  });
}

test("over tcp, where there is no bus, a watch lists and waits", async () => {
  const { daemon: listening, url, token } = await Daemon.startTcp();
  const client = listening.client({ token }, url);
  const sessionId = await createSession(client);
  const watch = await watching(client, { sessionId });
  for (let i = 0; i < 5; i++) {
    await client.publishEvent({ sessionId, type: "step" });
    await watch.take(1);
  }
  watch.end();
  await listening.close();
});

test("where no bus is found, too", async () => {
  const directory = temporary();
  const socket = join(directory, "tine.sock");
  symlinkSync(daemon.socket, socket);
  const client = daemon.client({}, `ipc://${socket}`);
  const sessionId = await createSession(tine);
  const watch = await watching(client, { sessionId });
  for (let i = 0; i < 5; i++) {
    await tine.publishEvent({ sessionId, type: "step" });
    await watch.take(1);
  }
  watch.end();
});
