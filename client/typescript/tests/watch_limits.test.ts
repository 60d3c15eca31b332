// A watch whose bus falls silent, and one that is not iterated.

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import { createTransport } from "@tine-store/client";
import {
  EventSchema,
  ListEventsResponseSchema,
  StoreService,
  WatchEventsRequestSchema,
  WatchStart,
} from "@tine-store/client/v1";
import { addressOf } from "../src/address.js";
import { Calls } from "../src/call.js";
import { helloOf, PUB, prefixBytes, prefixWrite } from "../src/frame.js";
import { Link } from "../src/link.js";
import { headRead, Watch, type WatchLimits } from "../src/watch.js";
import { appendOf, createSession, Daemon, type Tine, temporary } from "./daemon.js";
import { settled } from "./leaks.js";
import { FakeServer, failure, OK, success } from "./server.js";

let daemon: Daemon;
let tine: Tine;
let sessionId: string;
let instanceId: string;

before(async () => {
  daemon = await Daemon.run("--ephemeral");
  tine = daemon.client();
  sessionId = await createSession(tine);
  ({ instanceId } = await tine.describe({}));
});
after(() => daemon.close());

/** A bus that sends only what the test sends. */
class FakeBus {
  readonly path = join(temporary(), "fake.events");
  subscribers = 0;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server = createServer((socket) => {
    this.subscribers++;
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("error", () => {});
    socket.resume();
    socket.write(helloOf(PUB));
    this.say("heartbeat", "heartbeat", 1n);
  });

  listen(): Promise<void> {
    return new Promise((done) => this.#server.listen(this.path, done));
  }

  say(topic: string, type: string, sequence: bigint, id = instanceId): void {
    const event = create(EventSchema, { type, sequence, instanceId: id, sessionId });
    const message = Buffer.concat([Buffer.from(`${topic}\0`), toBinary(EventSchema, event)]);
    const prefix = Buffer.alloc(prefixBytes("ipc"));
    prefixWrite(prefix, "ipc", message.length);
    for (const socket of this.#sockets) socket.write(Buffer.concat([prefix, message]));
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((done) => this.#server.close(done));
  }
}

/** A watch of the session, with a fake bus. */
async function watchOn(eventsPath: string, limits: WatchLimits) {
  const link = new Link({ address: addressOf(daemon.url) });
  const calls = new Calls(link);
  const stop = new AbortController();
  let listings = 0;
  const host = {
    eventsPath,
    call: (method: string, body: Uint8Array, options: { isPatient: boolean }) => {
      if (method === "ListEvents") listings++;
      return calls.call({
        method: `/tine.v1.StoreService/${method}`,
        body,
        operationId: "",
        traceparent: "",
        token: "",
        timeoutMs: undefined,
        signal: stop.signal,
        isRepeatable: true,
        retryMs: options.isPatient ? Number.POSITIVE_INFINITY : 0,
      });
    },
    connections: () => link.connections,
    disconnect: () => link.disconnect("nobody waits for an event"),
  };
  const request = create(WatchEventsRequestSchema, { sessionId, start: WatchStart.NEW });
  const watch = new Watch(host, request, stop.signal, limits);
  await watch.begin();
  const end = () => {
    stop.abort();
    calls.close();
  };
  return { events: watch.events(), end, listings: () => listings };
}

test("a bus that falls silent is left, and what it did not tell is listed", async () => {
  const bus = new FakeBus();
  await bus.listen();
  const watch = await watchOn(bus.path, { silenceMs: 100, unaskedMs: 60_000 });
  const next = watch.events.next();
  const { receipt } = await tine.appendMessage(appendOf(sessionId, "untold"));
  const event = (await next).value;
  assert.ok(event && receipt);
  assert.equal(headRead(event).type, "message.appended");
  const again = watch.events.next();
  while (bus.subscribers < 2) await new Promise(setImmediate);
  await tine.publishEvent({ sessionId, type: "untold" });
  assert.ok((await again).value);
  watch.end();
  await bus.stop();
});

test("a process that was busy for longer than a bus may be silent loses no broadcast", async () => {
  const bus = new FakeBus();
  await bus.listen();
  const watch = await watchOn(bus.path, { silenceMs: 200, unaskedMs: 60_000 });
  const next = watch.events.next();
  bus.say(`session/${sessionId}/told`, "told", 0n);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
  await tine.publishEvent({ sessionId, type: "listed" });
  const event = (await next).value;
  assert.ok(event);
  assert.equal(headRead(event).type, "told");
  watch.end();
  await bus.stop();
});

test("a bus of another store is left, and nothing of it is given out", async () => {
  const bus = new FakeBus();
  await bus.listen();
  const watch = await watchOn(bus.path, { silenceMs: 60_000, unaskedMs: 60_000 });
  const next = watch.events.next();
  const { newestEventSequence: newest } = await tine.stats({});
  bus.say(`session/${sessionId}/bad`, "bad", newest + 1n, "01ARZ3NDEKTSV4RRFFQ69G5FAV");
  bus.say(`session/${sessionId}/bad`, "bad", 0n, "01ARZ3NDEKTSV4RRFFQ69G5FAV");
  await tine.publishEvent({ sessionId, type: "good" });
  const event = (await next).value;
  assert.ok(event);
  assert.equal(headRead(event).type, "good");
  watch.end();
  await bus.stop();
});

test("a heartbeat beyond the position makes a watch list", async () => {
  const bus = new FakeBus();
  await bus.listen();
  const watch = await watchOn(bus.path, { silenceMs: 60_000, unaskedMs: 60_000 });
  const next = watch.events.next();
  const { sequence } = await tine.publishEvent({ sessionId, type: "told" });
  bus.say("heartbeat", "heartbeat", sequence);
  const event = (await next).value;
  assert.ok(event);
  assert.equal(headRead(event).sequence, sequence);
  watch.end();
  await bus.stop();
});

test("a watch that nobody asks hangs up, and goes on where it was", async () => {
  const bus = new FakeBus();
  await bus.listen();
  const before = await settled();
  const watch = await watchOn(bus.path, { silenceMs: 60_000, unaskedMs: 50 });
  const next = watch.events.next();
  for (let i = 0; i < 3; i++) await tine.publishEvent({ sessionId, type: `step-${i}` });
  bus.say("heartbeat", "heartbeat", (await tine.stats({})).newestEventSequence);
  await next;
  while ((await settled()).sockets > before.sockets) await new Promise(setImmediate);
  await tine.publishEvent({ sessionId, type: "step-3" });
  const types: string[] = [];
  while (types.length < 3) {
    const event = (await watch.events.next()).value;
    assert.ok(event);
    types.push(headRead(event).type);
  }
  assert.deepEqual(types, ["step-1", "step-2", "step-3"]);
  watch.end();
  await bus.stop();
});

test("a server that has too much to do is waited for", async () => {
  let listings = 0;
  const event = create(EventSchema, { type: "told", sequence: 1n, instanceId });
  const pages = [{ instanceId }, undefined, undefined, { instanceId, events: [event] }];
  const server = await FakeServer.start(({ method, reply }) => {
    if (!method.endsWith("/ListEvents")) return reply(OK);
    const page = pages[listings++];
    const isBusy = page === undefined;
    if (isBusy) return reply(failure(Code.ResourceExhausted, "QUEUE_FULL"));
    reply(success(toBinary(ListEventsResponseSchema, create(ListEventsResponseSchema, page))));
  });
  const transport = createTransport(server.url);
  const events = createClient(StoreService, transport).watchEvents({})[Symbol.asyncIterator]();
  assert.equal((await events.next()).value?.event?.type, "told");
  assert.equal(listings, pages.length);
  transport.close();
  await server.stop();
});

test("a watch that began and was never asked hangs up, too", async () => {
  const bus = new FakeBus();
  await bus.listen();
  const before = await settled();
  const watch = await watchOn(bus.path, { silenceMs: 60_000, unaskedMs: 50 });
  while ((await settled()).sockets > before.sockets) await new Promise(setImmediate);
  await tine.publishEvent({ sessionId, type: "unseen" });
  const event = (await watch.events.next()).value;
  assert.ok(event);
  assert.equal(headRead(event).type, "unseen");
  watch.end();
  await bus.stop();
});

test("a watch that was left by a plain break ends when it is collected", async () => {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  const { signal } = new AbortController();
  const own = daemon.client();
  await own.publishEvent({ sessionId, type: "kept" });
  const before = await settled();
  for await (const { event } of own.watchEvents({ start: WatchStart.OLDEST }, { signal })) {
    assert.ok(event);
    break;
  }
  while ((await settled()).sockets > before.sockets) collect();
  assert.equal(getEventListeners(signal, "abort").length, 0);
});
