// Kills the daemon under writers and watchers.

import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { closeOnBreak, pages } from "@tine-store/client";
import { type Event, WatchStart } from "@tine-store/client/v1";
import { appendOf, createSession, Daemon, type Tine } from "./daemon.js";
import { watching } from "./watching.js";

const KILLS = 5;
const WRITERS = 16;

let daemon: Daemon;

before(async () => {
  daemon = await Daemon.run();
});
after(() => daemon.close());

/** Appends until `isOver`. Returns the acknowledged texts in order. */
async function write(
  append: (sessionId: string, text: string) => Promise<unknown>,
  sessionId: string,
  isOver: () => boolean,
): Promise<string[]> {
  const written: string[] = [];
  for (let i = 0; !isOver(); i++) {
    await append(sessionId, `${i}`);
    written.push(`${i}`);
  }
  return written;
}

async function textsOf(tine: Tine, sessionId: string): Promise<string[]> {
  const texts: string[] = [];
  for await (const { messages } of pages(tine.messagesForSession, { sessionId })) {
    for (const { parts } of messages) texts.push(String(parts[0]?.kind.value?.["text" as never]));
  }
  return texts;
}

/** Kills and restarts the daemon several times, always after some progress. */
async function killAgainAndAgain(progress: () => number): Promise<void> {
  for (let kills = 0; kills < KILLS; kills++) {
    const before = progress();
    while (progress() < before + 100) await delay(5);
    await daemon.kill();
    await daemon.start();
  }
}

async function killedUnder(append: (sessionId: string, text: string) => Promise<unknown>) {
  const tine = daemon.client({ retryMs: 60_000 });
  const sessions = await Promise.all(Array.from({ length: WRITERS }, () => createSession(tine)));
  const begin = (await tine.stats({})).newestEventSequence;
  const seen: Event[] = [];
  const stop = new AbortController();
  const watch = (async () => {
    const request = { start: WatchStart.AFTER, afterSequence: begin };
    const open = (signal: AbortSignal) =>
      tine.watchEvents(request, { signal: AbortSignal.any([signal, stop.signal]) });
    for await (const { event } of closeOnBreak(open)) {
      if (event) seen.push(event);
    }
  })().catch((error) => error);

  let count = 0;
  let isOver = false;
  const counted = async (sessionId: string, text: string) => {
    await append(sessionId, text);
    count++;
  };
  const writers = sessions.map((id) => write(counted, id, () => isOver));
  await killAgainAndAgain(() => count);
  isOver = true;
  const written = await Promise.all(writers);

  for (const [i, sessionId] of sessions.entries()) {
    assert.deepEqual(await textsOf(tine, sessionId), written[i], "none lost, none twice");
  }
  const total = written.reduce((sum, { length }) => sum + length, 0);
  while (seen.length < total) await Promise.race([delay(5), watch]);
  stop.abort();
  assert.ok(ConnectError.from(await watch).code === Code.Canceled);
  assert.deepEqual(
    seen.map(({ sequence }) => sequence),
    seen.map((_, i) => begin + 1n + BigInt(i)),
    "the watch has no gap and no double",
  );
  assert.equal(seen.length, total);
  return seen;
}

test("killed five times under 16 writers that retry: none lost, none twice, no gap", async () => {
  const tine = daemon.client({ retryMs: 60_000 });
  await killedUnder((sessionId, text) => tine.appendMessage(appendOf(sessionId, text)));
});

test("without retries calls end UNAVAILABLE, and sent again by hand none is there twice", async () => {
  const tine = daemon.client();
  let failures = 0;
  const append = async (sessionId: string, text: string) => {
    const headers = { "tine-operation-id": `${sessionId}-${text}` };
    for (;;) {
      try {
        return await tine.appendMessage(appendOf(sessionId, text), { headers });
      } catch (error) {
        assert.equal(ConnectError.from(error).code, Code.Unavailable);
        failures++;
        await delay(10);
      }
    }
  };
  await killedUnder(append);
  assert.ok(failures > 0);
});

test("a daemon that stops in order is as good", async () => {
  const tine = daemon.client({ retryMs: 60_000 });
  const sessionId = await createSession(tine);
  const watch = await watching(tine, { sessionId });
  await tine.publishEvent({ sessionId, type: "before" });
  await daemon.stop();
  const published = tine.publishEvent({ sessionId, type: "after" });
  await daemon.start();
  await published;
  const types = (await watch.take(2)).map(({ type }) => type);
  assert.deepEqual(types, ["before", "after"]);
  watch.end();
});

test("a signal that is aborted while nobody listens ends the watch", async () => {
  const other = await Daemon.run("--ephemeral");
  const stop = new AbortController();
  const events = other.client().watchEvents({}, { signal: stop.signal })[Symbol.asyncIterator]();
  const next = events.next().catch((error) => error);
  await other.client().health({});
  await delay(100);
  await other.kill();
  setTimeout(() => stop.abort(), 200);
  await once(stop.signal, "abort");
  assert.equal(ConnectError.from(await next).code, Code.Canceled);
  await other.close();
});
