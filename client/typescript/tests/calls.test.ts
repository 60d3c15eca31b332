// Calls to a real tined.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { reason } from "@tine-store/client";
import { createSession, Daemon, type Tine } from "./daemon.js";

let daemon: Daemon;
let tine: Tine;

before(async () => {
  daemon = await Daemon.start();
  tine = daemon.client();
});
after(() => daemon.stop());

/** The ConnectError that a call ends with. */
async function errorOf(call: Promise<unknown>): Promise<ConnectError> {
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof ConnectError, String(error));
    return error;
  }
  return assert.fail("the call succeeded");
}

test("a session is created and read", async () => {
  const id = await createSession(tine, "first");
  const { session } = await tine.getSession({ sessionId: id });
  assert.equal(session?.id, id);
  assert.equal(session?.slug, "first");
});

test("an error has the server's code, message and reason", async () => {
  const error = await errorOf(tine.getSession({ sessionId: "01ARZ3NDEKTSV4RRFFQ69G5FAV" }));
  assert.equal(error.code, Code.NotFound);
  assert.equal(reason(error), "SESSION_NOT_FOUND");
  assert.equal(error.metadata.get("tine-reason"), "SESSION_NOT_FOUND");
  assert.match(error.rawMessage, /01ARZ3NDEKTSV4RRFFQ69G5FAV/);
});
