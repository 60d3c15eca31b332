// The reasons equal those of the contract, and every error has one.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Code } from "@connectrpc/connect";
import { isReason, Reason, reason } from "@tine-store/client";
import { Reason as ContractReason } from "@tine-store/client/v1";
import { Daemon, failureOf, type Tine } from "./daemon.js";

let daemon: Daemon;
let tine: Tine;

before(async () => {
  daemon = await Daemon.run("--ephemeral");
  tine = daemon.client();
});
after(() => daemon.close());

test("all of the contract are there, each under its own name", () => {
  const names = Object.keys(ContractReason).filter((name) => !/^\d+$|^UNSPECIFIED$/.test(name));
  assert.deepEqual(Object.keys(Reason), names);
  assert.deepEqual(Object.values(Reason), names);
});

test("an error is asked for its reason, and says it", async () => {
  const error = await failureOf(tine.getSession({ sessionId: "01ARZ3NDEKTSV4RRFFQ69G5FAV" }));
  assert.ok(isReason(error, Reason.SESSION_NOT_FOUND));
  assert.ok(!isReason(error, Reason.MESSAGE_NOT_FOUND));
  assert.equal(reason(error), Reason.SESSION_NOT_FOUND);
  assert.equal(error.message, `[not_found] SESSION_NOT_FOUND: ${error.rawMessage}`);
  assert.ok(error.stack?.includes("SESSION_NOT_FOUND: "));
  assert.ok(!error.rawMessage.includes("SESSION_NOT_FOUND"));
});

test("a reason that says no more than the code is not said twice", async () => {
  const error = await failureOf(daemon.client({}, "ipc:///nowhere/tine.sock").health({}));
  assert.equal(error.code, Code.Unavailable);
  assert.ok(isReason(error, Reason.UNAVAILABLE));
  assert.equal(error.message, `[unavailable] ${error.rawMessage}`);
});

test("other errors have no reason", () => {
  for (const value of Object.values(Reason)) {
    assert.ok(!isReason(new Error(value), value));
    assert.ok(!isReason(undefined, value));
  }
});
