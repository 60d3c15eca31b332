// `ready()`: it waits for a daemon or rejects with the reason why there is none.

import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Code } from "@connectrpc/connect";
import { createTransport, reason, type TransportOptions } from "@tine-store/client";
import { clock } from "./clock.js";
import { Daemon, failureOf, Peer, temporary } from "./daemon.js";

function transportTo(context: TestContext, url: string, options: TransportOptions = {}) {
  const transport = createTransport(url, options);
  context.after(() => transport.close());
  return transport;
}

const nobody = () => `ipc://${join(temporary(), "none.sock")}`;

test("a daemon that is there is ready", async (context) => {
  const daemon = await Daemon.run("--ephemeral");
  context.after(() => daemon.close());
  await daemon.transport().ready();
  await daemon.transport({ retryMs: 1000 }).ready({ timeoutMs: 60_000 });
});

test("one that comes later is waited for", async (context) => {
  const socket = join(temporary(), "status.sock");
  const waits = clock(context, async () => {
    if (waits.length !== 3) return;
    const peer = await Peer.start("status", socket);
    context.after(() => peer.stop());
  });
  await transportTo(context, `ipc://${socket}`).ready();
  assert.deepEqual(waits, [1, 2, 4]);
});

test("when the time is up it says why there is none", async (context) => {
  const waits = clock(context);
  const transport = transportTo(context, nobody());
  const error = await failureOf(transport.ready({ timeoutMs: 10_000 }));
  assert.equal(reason(error), "UNAVAILABLE");
  assert.match(error.rawMessage, /no tined answers at .*none\.sock: .*ENOENT/);
  assert.equal(
    waits.reduce((sum, ms) => sum + ms),
    10_000,
  );
});

test("one that does not answer is DEADLINE_EXCEEDED", async (context) => {
  const peer = await Peer.start("hello-then-silent");
  context.after(() => peer.stop());
  const error = await failureOf(transportTo(context, peer.url).ready({ timeoutMs: 100 }));
  assert.equal(error.code, Code.DeadlineExceeded);
});

test("a tined that cannot be started is not waited for", async (context) => {
  const before = process.env["TINED"];
  process.env["TINED"] = "/nowhere/tined";
  context.after(() => {
    if (before === undefined) delete process.env["TINED"];
    else process.env["TINED"] = before;
  });
  const error = await failureOf(transportTo(context, nobody(), { start: true }).ready());
  assert.match(error.rawMessage, /\$TINED names none: \/nowhere\/tined/);
});

test("a token that is wrong is not waited with", async (context) => {
  const { daemon, url, token } = await Daemon.startTcp();
  context.after(() => daemon.close());
  await daemon.transport({ token }, url).ready();
  const error = await failureOf(daemon.transport({ token: "wrong" }, url).ready());
  assert.equal(error.code, Code.Unauthenticated);
});

test("a signal that is aborted, or a transport that is closed, ends it", async (context) => {
  const stop = new AbortController();
  const aborted = failureOf(transportTo(context, nobody()).ready({ signal: stop.signal }));
  const transport = transportTo(context, nobody());
  const closed = failureOf(transport.ready());
  setImmediate(() => {
    stop.abort();
    transport.close();
  });
  assert.equal((await aborted).code, Code.Canceled);
  assert.equal((await closed).rawMessage, "the client is closed");
  assert.equal((await failureOf(transport.ready())).rawMessage, "the client is closed");
});
