// The waits between attempts to connect.

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Code, createClient } from "@connectrpc/connect";
import { createTransport } from "@tine-store/client";
import { StoreService } from "@tine-store/client/v1";
import { clock } from "./clock.js";
import { Daemon, failureOf, freePort, Peer, temporary } from "./daemon.js";

function client(context: TestContext, url: string, retryMs: number) {
  const transport = createTransport(url, { retryMs });
  context.after(() => transport.close());
  return createClient(StoreService, transport);
}

for (const code of ["ENOENT", "ECONNREFUSED"]) {
  test(`a server that starts is met at once, after ${code}`, async (context) => {
    let socket = join(temporary(), "status.sock");
    if (code === "ECONNREFUSED") {
      const killed = await Daemon.run("--ephemeral");
      await killed.kill(); // its socket is left
      socket = killed.socket;
    }
    const waits = clock(context, async () => {
      if (waits.length !== 3) return;
      rmSync(socket, { force: true });
      const peer = await Peer.start("status", socket);
      context.after(() => peer.stop());
    });
    await client(context, `ipc://${socket}`, 60_000).getSession({ sessionId: "fine" });
    assert.deepEqual(waits, [1, 2, 4]);
  });
}

test("the wait doubles up to two seconds", async (context) => {
  const waits = clock(context);
  const tine = client(context, `ipc://${join(temporary(), "none.sock")}`, 10_000);
  assert.equal((await failureOf(tine.health({}))).code, Code.Unavailable);
  const doubled = Array.from({ length: 11 }, (_, i) => 2 ** i);
  assert.deepEqual(waits.slice(0, 14), [...doubled, 2000, 2000, 2000]);
});

test("other failures are waited for longer", async (context) => {
  const peer = await Peer.start("hang-up");
  context.after(() => peer.stop());
  const refused = `tcp://127.0.0.1:${await freePort()}`;
  const waits = clock(context);
  for (const url of [peer.url, refused]) {
    waits.length = 0;
    const tine = client(context, url, 5000);
    assert.equal((await failureOf(tine.health({}))).code, Code.Unavailable);
    assert.deepEqual(waits.slice(0, 3), [50, 100, 200]);
  }
});
