// A tined that the client starts; programs that end by themselves.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { answers, Daemon, Peer, TINED, temporary } from "./daemon.js";
import { type Outcome, ROOM, run } from "./run.js";

const PRELUDE = `
  import { createClient } from "@connectrpc/connect";
  import { closeOnBreak, createTransport, reason } from "@tine-store/client";
  import { StoreService, WatchStart } from "@tine-store/client/v1";
  const url = process.env.URL;
`;

/** Runs a program as a module in the directory of the package. */
function runText(text: string, environment: NodeJS.ProcessEnv): Promise<Outcome> {
  const program = ["--input-type=module", "--eval", PRELUDE + text];
  return run(process.execPath, program, environment, ROOM);
}

interface Place {
  socket: string;
  environment: NodeJS.ProcessEnv;
}

/** An environment in which a client starts a tined of its own. */
function placeOf(tined = TINED): Place {
  const directory = temporary();
  const socket = join(directory, "tine.sock");
  const environment = {
    URL: `ipc://${socket}`,
    TINED: tined,
    TINE_DATA: join(directory, "store"),
    XDG_STATE_HOME: join(directory, "state"),
    NOTIFY_SOCKET: join(directory, "not-for-tined"),
  };
  return { socket, environment };
}

async function stop({ socket }: Place): Promise<void> {
  process.kill(Number.parseInt(readFileSync(`${socket}.lock`, "utf8"), 10));
  while (await answers(socket)) await delay(10);
}

const START = `
  const tine = createClient(StoreService, createTransport(url, { start: true }));
  try {
    console.log((await tine.health({})).ready, (await tine.describe({})).instanceId);
  } catch (error) {
    console.log(reason(error), error.rawMessage);
  }
`;

test("a tined is started where none listens, and outlives who started it", async () => {
  const place = placeOf();
  const { code, output } = await runText(START, place.environment);
  assert.match(output, /^true [0-9A-Z]{26}\n$/);
  assert.equal(code, 0);
  assert.ok(await answers(place.socket));
  const again = await runText(START, { ...place.environment, TINED: "/none" });
  assert.equal(again.output, output, "it is used, and no other is started");
  const log = join(place.environment["XDG_STATE_HOME"] ?? "", "tine/tined.log");
  assert.match(readFileSync(log, "utf8"), /listen/);
  await stop(place);
});

test("many that start one at once get the same", async () => {
  const place = placeOf();
  const runs = await Promise.all(
    Array.from({ length: 5 }, () => runText(START, place.environment)),
  );
  const outputs = new Set(runs.map(({ output }) => output));
  assert.equal(outputs.size, 1, [...outputs].join());
  await stop(place);
});

test("so do they where there is no flock(1)", async () => {
  const place = placeOf();
  const bin = join(temporary(), "bin");
  mkdirSync(bin);
  const environment = { ...place.environment, PATH: bin };
  const runs = await Promise.all(Array.from({ length: 5 }, () => runText(START, environment)));
  const outputs = new Set(runs.map(({ output }) => output));
  assert.equal(outputs.size, 1, [...outputs].join());
  await stop(place);
});

test("where a tined is about to leave, another is started when it is gone", async () => {
  const directory = temporary();
  const tined = join(directory, "tined");
  // Twice it ends as if the socket were in use.
  writeFileSync(
    tined,
    `#!/bin/sh\necho >>${directory}/runs\n[ $(wc -l <${directory}/runs) -gt 2 ] || exit 3\n` +
      `exec ${TINED} "$@"\n`,
    { mode: 0o700 },
  );
  const place = placeOf(tined);
  const { output } = await runText(START, place.environment);
  assert.match(output, /^true [0-9A-Z]{26}\n$/);
  await stop(place);
});

test("a tined that does not start says why", async () => {
  const none = placeOf("/none/tined");
  const { output } = await runText(START, none.environment);
  assert.match(output, /^UNAVAILABLE .*\$TINED names none: \/none\/tined\n$/);

  const bad = placeOf();
  const failed = await runText(START, { ...bad.environment, TINE_LOG_LEVEL: "loud" });
  assert.match(failed.output, /^UNAVAILABLE .*tined does not start: .*loud/);

  const path = temporary();
  const absent = await runText(START, { ...bad.environment, TINED: "", PATH: path });
  assert.match(absent.output, /^UNAVAILABLE .*none is installed in PATH\n$/);

  const file = join(temporary(), "file");
  writeFileSync(file, "");
  const state = await runText(START, { ...bad.environment, XDG_STATE_HOME: file });
  assert.match(state.output, /^UNAVAILABLE .*for its log cannot be made\n$/);
});

let daemon: Daemon;
let peer: Peer;
before(async () => {
  daemon = await Daemon.run("--ephemeral");
  peer = await Peer.start("status");
});
after(async () => {
  await daemon.close();
  await peer.stop();
});

const CLIENT = "const tine = createClient(StoreService, createTransport(url));\n";

const programs: Record<string, string> = {
  "that made a call": "await tine.health({});",
  "that was never connected": "",
  "that left a watch by a plain break": `
    await tine.publishEvent({ type: "one" });
    for await (const _ of tine.watchEvents({ start: WatchStart.OLDEST })) break;`,
  "that left a watch by closeOnBreak": `
    await tine.publishEvent({ type: "one" });
    const open = (signal) => tine.watchEvents({ start: WatchStart.OLDEST }, { signal });
    for await (const _ of closeOnBreak(open)) break;`,
  "that began a watch and did not listen": "tine.watchEvents({});",
  "that gave up a call": `
    const signal = AbortSignal.timeout(20);
    await tine.getSession({ sessionId: "silent" }, { signal }).catch(() => {});`,
};

for (const [name, text] of Object.entries(programs)) {
  test(`a program ends by itself ${name}`, async () => {
    const URL = name.includes("gave up") ? peer.url : daemon.url;
    const ended = await runText(`${CLIENT}${text}\nconsole.log("end");`, { URL });
    assert.deepEqual(ended, { code: 0, output: "end\n" });
  });
}

test("a program does not end while a call or a watch is waited for", async () => {
  const call = `${CLIENT}await tine.getSession({ sessionId: "delay:300" }); console.log("end");`;
  assert.deepEqual(await runText(call, { URL: peer.url }), { code: 0, output: "end\n" });
  const watch = `${CLIENT}
    const events = tine.watchEvents({})[Symbol.asyncIterator]();
    setTimeout(() => tine.publishEvent({ type: "go" }), 300);
    console.log((await events.next()).value.event.type);`;
  assert.deepEqual(await runText(watch, { URL: daemon.url }), { code: 0, output: "go\n" });
});
