// What is sent when a connection breaks, and what is not.

import assert from "node:assert/strict";
import { readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Code, createClient, type Interceptor } from "@connectrpc/connect";
import { createTransport, reason, type TransportOptions } from "@tine-store/client";
import { StoreService } from "@tine-store/client/v1";
import { failureOf, Peer, temporary } from "./daemon.js";
import { FakeServer, failure, OK, type Received } from "./server.js";

async function serve(
  context: TestContext,
  onRequest: (request: Received, index: number) => void,
  options: TransportOptions = {},
) {
  const server = await FakeServer.start(onRequest);
  const transport = createTransport(server.url, options);
  context.after(async () => {
    transport.close();
    await server.stop();
  });
  return { server, tine: createClient(StoreService, transport) };
}

test("the envelope says what headers and options say", async (context) => {
  const { server, tine } = await serve(context, (request) => request.reply(OK), { token: "t" });
  const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  await tine.renameSession({}, { headers: { traceparent, "tine-operation-id": "mine" } });
  await tine.getSession(
    {},
    { timeoutMs: 60_000, headers: { "tine-token": "u", "tine-sync": "1" } },
  );
  const [write, read] = server.received;
  assert.equal(write?.method, "/tine.v1.StoreService/RenameSession");
  assert.equal(write?.operationId, "mine");
  assert.equal(write?.traceparent, traceparent);
  assert.equal(write?.token, "t");
  assert.equal(write?.timeoutMs, 0);
  assert.equal(read?.operationId, "", "a read has none");
  assert.equal(read?.token, "u");
  assert.deepEqual([write?.sync, read?.sync], [false, true]);
  assert.ok(read && read.timeoutMs > 0 && read.timeoutMs <= 60_000);
});

test("a call whose connection broke is UNAVAILABLE and is not sent again", async (context) => {
  const { server, tine } = await serve(context, (request) => request.hangUp());
  const error = await failureOf(tine.renameSession({}));
  assert.equal(error.code, Code.Unavailable);
  assert.match(error.rawMessage, /broke before the reply came: it hung up; whether the call was/);
  assert.equal(server.received.length, 1);
});

test("nor is one that the server refused", async (context) => {
  const refusal = failure(Code.Unavailable, "UNAVAILABLE");
  const { server, tine } = await serve(context, (request) => request.reply(refusal));
  assert.equal((await failureOf(tine.getSession({}))).code, Code.Unavailable);
  assert.equal(server.received.length, 1);
});

test("with retryMs it is sent again, a write under the same operation id", async (context) => {
  const onRequest = (request: Received, index: number) => {
    if (index < 2) request.hangUp();
    else if (index < 4) request.reply(failure(Code.Unavailable, "UNAVAILABLE"));
    else request.reply(OK);
  };
  const { server, tine } = await serve(context, onRequest, { retryMs: 60_000 });
  await tine.renameSession({});
  assert.equal(server.received.length, 5);
  const ids = new Set(server.received.map(({ operationId }) => operationId));
  assert.equal(ids.size, 1);
  assert.ok(!ids.has(""));
});

test("what would be done twice is not sent again, retryMs or not", async (context) => {
  const { server, tine } = await serve(context, (request) => request.hangUp(), { retryMs: 60_000 });
  const headers = { "tine-operation-id": "" };
  assert.equal((await failureOf(tine.renameSession({}, { headers }))).code, Code.Unavailable);
  assert.equal((await failureOf(tine.broadcastEvent({}))).code, Code.Unavailable);
  assert.equal(server.received.length, 2);
});

test("retries end with the deadline", async (context) => {
  const { tine } = await serve(context, (request) => request.hangUp(), { retryMs: 60_000 });
  const error = await failureOf(tine.getSession({}, { timeoutMs: 100 }));
  assert.ok(error.code === Code.Unavailable || error.code === Code.DeadlineExceeded);
});

test("retries end with their own time", async (context) => {
  const { server, tine } = await serve(context, (request) => request.hangUp(), { retryMs: 100 });
  assert.equal((await failureOf(tine.renameSession({}))).code, Code.Unavailable);
  assert.ok(server.received.length > 0);
});

test("failures that are no UNAVAILABLE are not tried again", async (context) => {
  const onRequest = (request: Received) => request.reply(failure(Code.Internal, "ODD"));
  const { server, tine } = await serve(context, onRequest, { retryMs: 60_000 });
  const error = await failureOf(tine.getSession({}));
  assert.equal(error.code, Code.Internal);
  assert.equal(reason(error), "ODD");
  assert.equal(server.received.length, 1);
});

test("a server that accepts and hangs up is not connected to in a loop", async (context) => {
  const { server, tine } = await serve(context, (request) => request.hangUp());
  for (let i = 0; i < 50; i++) await failureOf(tine.getSession({}));
  assert.ok(server.connections < 10, `${server.connections} connections`);
});

test("calls share one connection, and a new one follows when it broke", async (context) => {
  const onRequest = (request: Received, index: number) => {
    if (index === 100) request.hangUp();
    else request.reply(OK);
  };
  const { server, tine } = await serve(context, onRequest);
  await Promise.all(Array.from({ length: 100 }, () => tine.getSession({})));
  assert.equal(server.connections, 1);
  await failureOf(tine.getSession({}));
  await tine.getSession({});
  assert.equal(server.connections, 2);
});

test("a status said twice is not a success, and a reply of nothing is none", async (context) => {
  const replies = [
    Uint8Array.of(0x0a, 2, 8, 5, 0x0a, 0, 0x7a, 0),
    new Uint8Array(0),
    Uint8Array.of(0x7a, 2, 0x0a, 9),
  ];
  const onRequest = (request: Received, index: number) => request.reply(replies[index] ?? OK);
  const { tine } = await serve(context, onRequest);
  assert.equal((await failureOf(tine.getSession({}))).code, Code.NotFound);
  assert.equal((await failureOf(tine.getSession({}))).code, Code.Internal);
  const error = await failureOf(tine.getSession({}));
  assert.equal(error.code, Code.Internal);
  assert.equal(error.rawMessage, "the reply cannot be decoded");
});

test("a reason of a server gone wild is handed on as it is", async (context) => {
  const wild = "a\nb: %20 é";
  const { tine } = await serve(context, (request) => request.reply(failure(Code.Internal, wild)));
  assert.equal(reason(await failureOf(tine.getSession({}))), wild);
});

test("a call that finds its connection gone stale takes a new one", async (context) => {
  const [old, fresh] = [await Peer.start("status"), await Peer.start("status")];
  const socket = join(temporary(), "link.sock");
  symlinkSync(old.socket, socket);
  const transport = createTransport(`ipc://${socket}`);
  context.after(() => fresh.stop());
  const tine = createClient(StoreService, transport);
  await tine.getSession({ sessionId: "x" });
  // In one turn of the event loop, so that the client does not notice it yet.
  process.kill(old.pid, "SIGKILL");
  while (!/^State:\tZ/m.test(readFileSync(`/proc/${old.pid}/status`, "utf8")));
  rmSync(socket);
  symlinkSync(fresh.socket, socket);
  await tine.renameSession({}, { headers: { "tine-operation-id": "" } });
  transport.close();
});

test("a call that an interceptor sends again is the same one", async (context) => {
  const again: Interceptor = (next) => async (request) => {
    try {
      return await next(request);
    } catch {
      return await next(request);
    }
  };
  const onRequest = (request: Received, index: number) =>
    request.reply(index % 2 === 0 ? failure(Code.Unavailable, "UNAVAILABLE") : OK);
  const { server, tine } = await serve(context, onRequest, { interceptors: [again] });
  const headers = { "tine-operation-id": "mine" };
  await tine.renameSession({});
  await tine.renameSession({}, { headers });
  await tine.renameSession({}, { headers: { "tine-operation-id": "" } });
  const ids = server.received.map(({ operationId }) => operationId);
  assert.match(ids[0] ?? "", /^.{36}$/);
  assert.deepEqual(ids, [ids[0], ids[0], "mine", "mine", "", ""]);
});
