// Calls to a tined.

import assert from "node:assert/strict";
import { chmodSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Code, createClient, type Interceptor } from "@connectrpc/connect";
import { createTransport, isReason, Reason, reason } from "@tine-store/client";
import { StoreService } from "@tine-store/client/v1";
import { Calls } from "../src/call.js";
import { Link } from "../src/link.js";
import {
  appendOf,
  createSession,
  Daemon,
  failureOf,
  Peer,
  type Tine,
  temporary,
} from "./daemon.js";

let daemon: Daemon;
let tine: Tine;
let sessionId: string;
let peer: Peer;

let tcp: { url: string; token: string };

before(async () => {
  ({ daemon, ...tcp } = await Daemon.startTcp());
  tine = daemon.client();
  sessionId = await createSession(tine, "first");
  peer = await Peer.start("status");
});
after(async () => {
  await daemon.close();
  await peer.stop();
});

test("a session is created and read", async () => {
  const { session } = await tine.getSession({ sessionId });
  assert.equal(session?.id, sessionId);
  assert.equal(session?.slug, "first");
});

test("an error has the server's code, message and reason", async () => {
  const error = await failureOf(tine.getSession({ sessionId: "01ARZ3NDEKTSV4RRFFQ69G5FAV" }));
  assert.equal(error.code, Code.NotFound);
  assert.equal(reason(error), "SESSION_NOT_FOUND");
  assert.equal(error.metadata.get("tine-reason"), "SESSION_NOT_FOUND");
  assert.match(error.rawMessage, /01ARZ3NDEKTSV4RRFFQ69G5FAV/);
});

test("an error of nobody's has no reason", () => {
  assert.equal(reason(new Error("x")), "");
  assert.equal(reason(undefined), "");
});

test("a thousand calls at once on one connection are all answered", async () => {
  const replies = await Promise.all(
    Array.from({ length: 1000 }, () => tine.getSession({ sessionId })),
  );
  for (const { session } of replies) assert.equal(session?.id, sessionId);
});

test("a write gets an operation id of its own", async () => {
  const { session } = await tine.renameSession({ sessionId, slug: "second" });
  assert.equal(session?.slug, "second");
  const { events } = await tine.listEvents({ sessionId });
  const ids = events.map(({ operationId }) => operationId);
  for (const id of ids) assert.match(id, /^[0-9a-f-]{36}$/);
  assert.equal(new Set(ids).size, ids.length);
});

test("a write under the operation id of another is that one", async () => {
  const headers = { "tine-operation-id": "append-once" };
  const first = await tine.appendMessage(appendOf(sessionId, "once"), { headers });
  const again = await tine.appendMessage(appendOf(sessionId, "once"), { headers });
  assert.equal(again.receipt?.id, first.receipt?.id);
  const error = await failureOf(tine.appendMessage(appendOf(sessionId, "other"), { headers }));
  assert.equal(error.code, Code.Aborted);
  assert.equal(reason(error), "OPERATION_ID_REUSED");
});

test("a write whose operation id is empty has none", async () => {
  const headers = { "tine-operation-id": "" };
  await tine.appendMessage(appendOf(sessionId, "no id"), { headers });
  const { events } = await tine.listEvents({ sessionId });
  assert.equal(events.at(-1)?.operationId, "");
});

test("a large message is written and read", async () => {
  const text = "é".repeat(5 * 1024 * 1024);
  const { receipt } = await tine.appendMessage(appendOf(sessionId, text));
  const by = { case: "messageId" as const, value: receipt?.id ?? "" };
  const { message } = await tine.getMessage({ by });
  assert.equal(message?.parts[0]?.kind.case, "text");
  assert.ok(message?.parts[0]?.kind.value?.text === text);
});

test("large messages at once wait for each other, and for nothing else", async () => {
  const text = "a".repeat(3 * 1024 * 1024);
  const writes = Array.from({ length: 30 }, () => tine.appendMessage(appendOf(sessionId, text)));
  const stop = new AbortController();
  const given = failureOf(
    tine.appendMessage(appendOf(sessionId, text), { signal: stop.signal, timeoutMs: 60_000 }),
  );
  setTimeout(() => stop.abort(), 5);
  const receipts = await Promise.all(writes);
  assert.equal(new Set(receipts.map(({ receipt }) => receipt?.id)).size, 30);
  assert.equal((await given).code, Code.Canceled);
});

test("a request over 16 MiB is refused here, and the connection lives", async () => {
  const error = await failureOf(
    tine.appendMessage(appendOf(sessionId, "a".repeat(16 * 1024 * 1024))),
  );
  assert.equal(error.code, Code.InvalidArgument);
  assert.equal(reason(error), "TOO_LONG");
  await tine.health({});
});

test("bytes come back as they were", async () => {
  const data = Uint8Array.from({ length: 256 }, (_, i) => i);
  const value = { mimeType: "image/png", source: { case: "data" as const, value: data } };
  const { message } = appendOf(sessionId, "");
  const parts = [{ kind: { case: "image" as const, value } }];
  const { receipt } = await tine.appendMessage({ sessionId, message: { ...message, parts } });
  const by = { case: "messageId" as const, value: receipt?.id ?? "" };
  const found = (await tine.getMessage({ by })).message?.parts[0]?.kind;
  assert.equal(found?.case, "image");
  assert.deepEqual(found?.value.source.value, data);
});

test("a call that is not a message's ends INVALID_ARGUMENT", async () => {
  const error = await failureOf(tine.listSessions({ limit: -1 }));
  assert.equal(error.code, Code.InvalidArgument);
  assert.match(error.rawMessage, /cannot be encoded/);
});

test("a deadline ends a call that is not answered", async () => {
  const silent = daemon.client({}, peer.url);
  const error = await failureOf(silent.getSession({ sessionId: "silent" }, { timeoutMs: 50 }));
  assert.equal(error.code, Code.DeadlineExceeded);
  assert.equal(reason(error), "DEADLINE_EXCEEDED");
  assert.match(error.rawMessage, /whether the call was done is not known/);
});

test("a default deadline holds for calls that say none, and 0 is none", async () => {
  const silent = daemon.client({ defaultTimeoutMs: 50 }, peer.url);
  const error = await failureOf(silent.getSession({ sessionId: "silent" }));
  assert.equal(error.code, Code.DeadlineExceeded);
  await silent.getSession({ sessionId: "delay:150" }, { timeoutMs: 0 });
});

test("a call that is cancelled ends, its late reply is dropped, the connection lives", async () => {
  const late = daemon.client({}, peer.url);
  const stop = new AbortController();
  const call = late.getSession({ sessionId: "delay:100" }, { signal: stop.signal });
  const other = late.getSession({ sessionId: "delay:200" });
  setTimeout(() => stop.abort(), 30);
  const error = await failureOf(call);
  assert.equal(error.code, Code.Canceled);
  assert.equal(reason(error), "CANCELLED");
  await other;
});

test("a call that was cancelled before it began is not sent", async () => {
  const id = "cancelled-before";
  const options = { signal: AbortSignal.abort(), headers: { "tine-operation-id": id } };
  const error = await failureOf(tine.appendMessage(appendOf(sessionId, "never"), options));
  assert.equal(error.code, Code.Canceled);
  const { events } = await tine.listEvents({ sessionId });
  assert.ok(!events.some(({ operationId }) => operationId === id));
});

test("a call cancelled in the turn in which it was made is not sent", async () => {
  const stop = new AbortController();
  const id = "cancelled-at-once";
  await tine.health({});
  const options = { signal: stop.signal, headers: { "tine-operation-id": id } };
  const call = tine.appendMessage(appendOf(sessionId, "never"), options);
  stop.abort();
  assert.equal((await failureOf(call)).code, Code.Canceled);
  await tine.health({});
  const { events } = await tine.listEvents({ sessionId });
  assert.ok(!events.some(({ operationId }) => operationId === id));
});

test("one signal for many calls leaves no listeners behind, and warns of nothing", async () => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => warnings.push(warning);
  process.on("warning", onWarning);
  const { signal } = new AbortController();
  await Promise.all(
    Array.from({ length: 100 }, () =>
      tine.getSession({ sessionId }, { signal, timeoutMs: 60_000 }),
    ),
  );
  await new Promise((done) => setImmediate(done));
  process.off("warning", onWarning);
  assert.deepEqual(warnings, []);
});

test("64 calls are in flight; the 65th waits its turn, and its deadline runs", async () => {
  const full = daemon.client({}, peer.url);
  const calls = Array.from({ length: 64 }, () => full.getSession({ sessionId: "delay:300" }));
  const error = await failureOf(full.getSession({ sessionId: "x" }, { timeoutMs: 50 }));
  assert.equal(error.code, Code.DeadlineExceeded);
  assert.match(error.rawMessage, /nothing was done/);
  const waiting = full.getSession({ sessionId: "x" });
  await Promise.all(calls);
  await waiting;
});

test("64 calls that nobody answers in time are the end of a connection", async () => {
  const stuck = daemon.client({}, peer.url);
  await stuck.getSession({ sessionId: "x" });
  const calls = Array.from({ length: 64 }, () =>
    failureOf(stuck.getSession({ sessionId: "silent" }, { timeoutMs: 50 })),
  );
  const waiting = stuck.getSession({ sessionId: "x" });
  for (const error of await Promise.all(calls)) assert.equal(error.code, Code.DeadlineExceeded);
  await waiting;
});

test("a closed transport ends its calls, and later ones, CANCELED", async () => {
  const transport = daemon.transport({}, peer.url);
  const closed = createClient(StoreService, transport);
  const call = closed.getSession({ sessionId: "silent" });
  setTimeout(() => transport.close(), 20);
  const error = await failureOf(call);
  assert.equal(error.code, Code.Canceled);
  assert.equal(error.rawMessage, "the client is closed");
  assert.equal((await failureOf(closed.health({}))).code, Code.Canceled);
});

test("over tcp the token lets in, by option or by header", async () => {
  await daemon.client({ token: tcp.token }, tcp.url).getSession({ sessionId });
  const bare = daemon.client({}, tcp.url);
  await bare.getSession({ sessionId }, { headers: { "tine-token": tcp.token } });
  const error = await failureOf(bare.getSession({ sessionId }));
  assert.equal(error.code, Code.Unauthenticated);
});

test("interceptors see calls, and what they set is sent", async () => {
  const seen: string[] = [];
  const interceptor: Interceptor = (next) => async (request) => {
    seen.push(request.method.name);
    request.header.set("tine-operation-id", "intercepted");
    return next(request);
  };
  const client = daemon.client({ interceptors: [interceptor] });
  await client.appendMessage(appendOf(sessionId, "x"), { timeoutMs: 60_000 });
  assert.deepEqual(seen, ["AppendMessage"]);
  const { events } = await client.listEvents({ sessionId });
  assert.equal(events.at(-1)?.operationId, "intercepted");
  const late = daemon.client({ interceptors: [interceptor] }, peer.url);
  const error = await failureOf(late.getSession({ sessionId: "silent" }, { timeoutMs: 50 }));
  assert.equal(error.code, Code.DeadlineExceeded);
});

test("headers of a reply are there for who asks", async () => {
  const seen: Headers[] = [];
  await tine.health(
    {},
    { onHeader: (header) => seen.push(header), onTrailer: (t) => seen.push(t) },
  );
  assert.deepEqual(
    seen.map((headers) => [...headers]),
    [[], []],
  );
});

for (const url of [
  "ipc://",
  `ipc://${"x".repeat(108)}`,
  "tcp://host",
  "tcp://h:70000",
  "http://x",
]) {
  test(`'${url.slice(0, 20)}' is no URL of a server`, () => {
    assert.throws(() => createTransport(url), { code: Code.InvalidArgument });
  });
}

test("the path of a socket has 107 bytes, and a longer one is refused here", () => {
  for (const path of [`/${"x".repeat(106)}`, `/${"é".repeat(53)}`]) {
    assert.equal(createTransport(`ipc://${path}`).url, `ipc://${path}`);
    assert.throws(() => createTransport(`ipc://${path}x`), {
      code: Code.InvalidArgument,
      rawMessage: new RegExp(`has 108 bytes; .* at most 107: ${path}x$`),
    });
  }
  assert.throws(() => createTransport("ipc://"), { rawMessage: /has no path/ });
});

test("a malformed id and a limit that is too large are refused, not looked for", async () => {
  const { sessions } = await tine.listSessions({ limit: 1000 });
  assert.ok(sessions.some(({ id }) => id === sessionId));
  for (const call of [
    tine.getSession({ sessionId: sessionId.slice(1) }),
    tine.getSession({ sessionId: sessionId.toLowerCase() }),
    tine.listSessions({ limit: 1001 }),
    tine.listEvents({ limit: 100_001 }),
  ]) {
    const error = await failureOf(call);
    assert.equal(error.code, Code.InvalidArgument);
    assert.ok(isReason(error, Reason.INVALID_ARGUMENT));
  }
});

test("without a URL it is where tined listens by itself", () => {
  const before = { ...process.env };
  try {
    process.env["TINE_URL"] = "ipc:///run/u.sock";
    process.env["TINE_SOCKET"] = "/run/t.sock";
    assert.equal(createTransport().url, "ipc:///run/u.sock");
    delete process.env["TINE_URL"];
    assert.equal(createTransport().url, "ipc:///run/t.sock");
    process.env["TINE_SOCKET"] = "tcp://127.0.0.1:7";
    assert.equal(createTransport().url, "tcp://127.0.0.1:7");
    delete process.env["TINE_SOCKET"];
    process.env["XDG_RUNTIME_DIR"] = "/run/user/7";
    assert.equal(createTransport().url, "ipc:///run/user/7/tine/tine.sock");
    process.env["XDG_RUNTIME_DIR"] = "not/absolute";
    assert.equal(createTransport().url, `ipc:///tmp/tine-${process.geteuid?.()}/tine.sock`);
  } finally {
    process.env = before;
  }
});

test("a directory that others can write to is not trusted, whenever that began", async (context) => {
  const place = await Daemon.run("--ephemeral");
  context.after(() => place.close());
  const link = new Link({ address: { framing: "ipc", path: place.socket, isInTmp: true } });
  const calls = new Calls(link);
  const health = () =>
    calls.call({
      method: "/tine.v1.StoreService/Health",
      body: new Uint8Array(0),
      operationId: "",
      traceparent: "",
      token: "",
      timeoutMs: undefined,
      signal: undefined,
      isRepeatable: true,
      retryMs: 0,
    });
  await health();
  link.disconnect("it is to be made again");
  chmodSync(place.directory, 0o777);
  assert.match((await failureOf(health())).rawMessage, /others can write to it/);
  calls.close();
});

test("nobody listens: UNAVAILABLE, at once, and in words", async () => {
  const nobody = daemon.client({}, `ipc://${join(temporary(), "none.sock")}`);
  const error = await failureOf(nobody.health({}));
  assert.equal(error.code, Code.Unavailable);
  assert.equal(reason(error), "UNAVAILABLE");
  assert.match(error.rawMessage, /^no tined answers at .*none\.sock: /);
});

test("the package's version is the tree's", () => {
  const { version } = JSON.parse(readFileSync("package.json", "utf8"));
  const cmake = readFileSync(join(process.env["TINE_ROOT"] ?? "../..", "CMakeLists.txt"), "utf8");
  assert.ok(cmake.includes(`project(tine VERSION ${version} `));
});
