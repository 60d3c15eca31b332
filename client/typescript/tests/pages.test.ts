// `pages` of every listing: to the end, left early, and with an error.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { create, type DescField, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { type CallOptions, Code, ConnectError } from "@connectrpc/connect";
import { pages } from "@tine-store/client";
import {
  CostGroup,
  type ListSessionsRequest,
  type ListSessionsResponse,
  ListSessionsResponseSchema,
  type Message,
  Role,
  StoreService,
} from "@tine-store/client/v1";
import { appendOf, createSession, Daemon, failureOf, type Tine } from "./daemon.js";

const COUNT = 5;

let daemon: Daemon;
let tine: Tine;
let sessionId = "";

before(async () => {
  daemon = await Daemon.run("--ephemeral");
  tine = daemon.client();
  await fill();
});
after(() => daemon.close());

/** Creates COUNT of everything that can be listed. */
async function fill(): Promise<void> {
  const requested = { provider: "p", name: "m" };
  for (let i = 0; i < COUNT; i++) {
    sessionId = await createSession(tine);
    await tine.recordCall({ sessionId, call: { requested } });
  }
  for (let i = 0; i < COUNT; i++) {
    await tine.addCompactionMarker({ sessionId, marker: { keepAll: true, summary: `${i}` } });
    await tine.rememberSessionMemory({ sessionId, memory: { content: `${i}` } });
    await tine.recordCall({ sessionId, call: { requested } });
  }
  for (let i = 0; i < COUNT; i++) {
    const value = { id: `${i}`, name: "ls", input: { case: "inputJson" as const, value: "{}" } };
    const parts = [{ kind: { case: "toolUse" as const, value } }];
    const message = { role: Role.ASSISTANT, parts };
    const { receipt } = await tine.appendMessage({ sessionId, message });
    await tine.putOriginal({ messageId: receipt?.id ?? "", content: Buffer.from(`${i}`) });
  }
}

type Rows = Record<string, { $typeName: string }[]>;
type Call = (
  request: { [name: string]: unknown; cursor?: string },
  options?: CallOptions,
) => Promise<Rows & { nextCursor: string }>;

const isRows = (field: DescField) =>
  field.fieldKind === "list" && field.listKind === "message" ? field : undefined;

const listings = StoreService.methods.filter(({ input }) => input.field["cursor"]);

test("listings are found", () => assert.ok(listings.length >= 12));

for (const { localName, input, output } of listings) {
  test(`${localName} is paged to its end`, async () => {
    const rows = output.fields.map(isRows).find((field) => field);
    assert.ok(rows);
    const encoded = (page: Rows) =>
      page[rows.localName]?.map((row) => toBinary(rows.message, row as MessageShape<never>)) ?? [];
    const call = (tine as unknown as Record<string, Call>)[localName];
    assert.ok(call);
    const all = input.field["by"] ? { by: CostGroup.SESSION } : { sessionId };
    const whole = encoded(await call(all));
    const small = input.field["limit"] ? { limit: 1 } : { pageBytes: 1 };
    const paged: Uint8Array[] = [];
    let count = 0;
    for await (const page of pages(call, { ...all, ...small }, { timeoutMs: 60_000 })) {
      paged.push(...encoded(page));
      count++;
    }
    assert.ok(count >= COUNT, `${count} pages`);
    assert.deepEqual(paged, whole);
  });
}

test("the pages are typed as their call is", async () => {
  const texts: Message[] = [];
  const id = await createSession(tine);
  await tine.appendMessage(appendOf(id, "one"));
  await tine.appendMessage(appendOf(id, "two"));
  for await (const { messages } of pages(tine.messagesForSession, { sessionId: id, limit: 1 })) {
    texts.push(...messages);
  }
  assert.equal(texts.length, 2);
  // @ts-expect-error it has no cursor
  assert.ok(pages(tine.getSession, { sessionId: id }));
});

/** A fake listing without an end, which fails the third time. */
function counted() {
  const cursors: (string | undefined)[] = [];
  const call = async (request: Partial<ListSessionsRequest>): Promise<ListSessionsResponse> => {
    cursors.push(request.cursor);
    if (cursors.length === 3) throw new ConnectError("gone", Code.Unavailable);
    return create(ListSessionsResponseSchema, { nextCursor: `${request.cursor ?? ""}+` });
  };
  return { cursors, call };
}

test("pages are asked for one by one, and may be left", async () => {
  const { cursors, call } = counted();
  const listing = pages(call, { cursor: "begin" });
  assert.deepEqual(cursors, []);
  for await (const page of listing) if (page.nextCursor === "begin++") break;
  assert.deepEqual(cursors, ["begin", "begin+"]);
  assert.ok((await listing.next()).done);
});

test("an error is thrown once", async () => {
  const { cursors, call } = counted();
  const listing = pages(call, {});
  await listing.next();
  await listing.next();
  assert.equal((await failureOf(listing.next())).rawMessage, "gone");
  assert.ok((await listing.next()).done);
  assert.deepEqual(cursors, [undefined, "+", "++"]);
});
