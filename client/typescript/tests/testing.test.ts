// The tined that `@tine-store/client/testing` runs for a test.

import assert from "node:assert/strict";
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { Code, createClient } from "@connectrpc/connect";
import { createTransport } from "@tine-store/client";
import { Tined, type TinedOptions } from "@tine-store/client/testing";
import { StoreService } from "@tine-store/client/v1";
import { createSession, failureOf, TINED, temporary } from "./daemon.js";
import { ROOM, run } from "./run.js";

async function start(context: TestContext, options?: TinedOptions): Promise<Tined> {
  const tined = await Tined.start(options);
  context.after(() => tined.close());
  return tined;
}

function clientOf(context: TestContext, tined: Tined) {
  const transport = createTransport(tined.url);
  context.after(() => transport.close());
  return createClient(StoreService, transport);
}

function isRunning(pid: number | undefined): boolean {
  try {
    return process.kill(pid ?? 0, 0);
  } catch {
    return false;
  }
}

/** Sets an environment variable for one test. */
function set(context: TestContext, name: string, value: string): void {
  const before = process.env[name];
  process.env[name] = value;
  context.after(() => {
    if (before === undefined) delete process.env[name];
    else process.env[name] = before;
  });
}

test("it answers, and nothing is left of it", async (context) => {
  const tined = await start(context);
  assert.ok((await clientOf(context, tined).health({})).ready);
  const { pid } = tined;
  await tined.close();
  assert.ok(!existsSync(tined.directory));
  assert.equal(tined.pid, undefined);
  assert.ok(!isRunning(pid));
  await tined.close();
});

test("its store outlives a crash and a stop", async (context) => {
  const tined = await start(context, { directory: temporary() });
  const tine = clientOf(context, tined);
  const sessionId = await createSession(tine);
  for (const end of [() => tined.kill(), () => tined.stop()]) {
    await end();
    await end();
    await tined.start();
    await tined.start();
    assert.equal((await tine.getSession({ sessionId })).session?.id, sessionId);
  }
  await tined.close();
  assert.ok(existsSync(join(tined.directory, "store")));
});

test("one that does not stop is killed", async (context) => {
  const tined = await start(context, { args: ["--ephemeral"], stopTimeoutMs: 100 });
  const { pid = 0 } = tined;
  process.kill(pid, "SIGSTOP");
  await tined.stop();
  assert.ok(!isRunning(pid));
});

test("the caller's environment does not reach it", async (context) => {
  set(context, "TINE_LOG_LEVEL", "nonsense");
  set(context, "TINE_EPHEMERAL", "1");
  set(context, "NOTIFY_SOCKET", "@another");
  const tined = await start(context);
  assert.ok(existsSync(join(tined.directory, "store")));
});

test("the program is the option's, that of $TINED, or the one in PATH", async (context) => {
  set(context, "TINED", "");
  set(context, "PATH", "/nowhere");
  const none = await failureOf(Tined.start());
  assert.match(none.rawMessage, /\$TINED names none, and none is installed in PATH/);
  const wrong = await failureOf(Tined.start({ tined: "/nowhere/tined" }));
  assert.match(wrong.rawMessage, /the option names none: \/nowhere\/tined/);
  await start(context, { tined: TINED });
  process.env["PATH"] = dirname(TINED);
  await start(context);
});

test("one that does not start says why", async () => {
  const error = await failureOf(Tined.start({ args: ["--nonsense"] }));
  assert.equal(error.code, Code.Unavailable);
  assert.match(error.rawMessage, /tined does not start: .*--nonsense/);
});

test("a directory may be too deep for a socket", async (context) => {
  const deep = join(temporary(), "x".repeat(120));
  mkdirSync(deep);
  assert.throws(() => new Tined({ directory: deep }), { code: Code.InvalidArgument });
  set(context, "TMPDIR", deep);
  await start(context);
});

test("one that a program forgets ends with it, and does not keep it", async () => {
  const program = `
    import { Tined } from "@tine-store/client/testing";
    const { pid, directory } = await Tined.start({ args: ["--ephemeral"] });
    console.log(JSON.stringify({ pid, directory }));`;
  const text = ["--input-type=module", "--eval", program];
  const { code, output } = await run(process.execPath, text, {}, ROOM);
  assert.equal(code, 0, output);
  const { pid, directory } = JSON.parse(output);
  while (isRunning(pid)) await new Promise(setImmediate);
  assert.ok(!existsSync(directory));
});
