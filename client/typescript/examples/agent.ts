// One turn of a small agent: a question, an answer that uses two tools in parallel, their results,
// its cost, and a fork with another answer. A watch sees all events.
//
//     node out/examples/agent.js [URL]

import { createClient } from "@connectrpc/connect";
import { closeOnBreak, createTransport } from "@tine-store/client";
import { MessageStatus, Role, StoreService, ToolState, WatchStart } from "@tine-store/client/v1";

const transport = createTransport(process.argv[2]);
const tine = createClient(StoreService, transport);

const tools: Record<string, (input: string) => Promise<string>> = {
  clock: async () => "a quarter past nine",
  weather: async (place) => `rain in ${place}`,
};

// The tool calls that a model would return.
const uses = [
  { id: "use-1", name: "clock", input: { case: "inputJson" as const, value: "{}" } },
  { id: "use-2", name: "weather", input: { case: "inputJson" as const, value: '"Oslo"' } },
];

const text = (text: string) => ({ kind: { case: "text" as const, value: { text } } });

const { session } = await tine.createSession({
  session: { projectDir: process.cwd(), model: { provider: "example", name: "small" } },
});
const sessionId = session?.id ?? "";
const seen = watch();

await tine.appendMessage({
  sessionId,
  message: { role: Role.USER, parts: [text("Should I take an umbrella?")] },
});

// The message stays open while the tools run.
const answer = await tine.appendMessage({
  sessionId,
  message: {
    role: Role.ASSISTANT,
    status: MessageStatus.OPEN,
    parts: [text("Let me look.")],
  },
});
const messageId = answer.receipt?.id ?? "";

const results = await Promise.all(
  uses.map(async (use) => {
    const { receipt } = await tine.appendPart({ messageId, part: toolUse(use, ToolState.RUNNING) });
    const content = (await tools[use.name]?.(JSON.parse(use.input.value))) ?? "";
    const part = { ...toolUse(use, ToolState.COMPLETED), id: receipt?.partIds[0] ?? "" };
    await tine.appendPart({ messageId, part });
    return { toolUseId: use.id, toolName: use.name, content };
  }),
);
// Sealing the message adds its cost to the totals of the session and its parents.
await tine.sealMessage({
  messageId,
  usage: { inputTokens: 1200n, outputTokens: 80n, costNanoUsd: 4_800_000n },
  propagateUsage: true,
});
await tine.appendMessage({
  sessionId,
  message: {
    role: Role.TOOL,
    parts: results.map((value) => ({ kind: { case: "toolResult" as const, value } })),
  },
});

// Another answer to the same question, in a fork. A fork copies nothing.
const { session: fork } = await tine.forkSession({
  sessionId,
  forkPoint: { case: "beforeMessageId", value: messageId },
});
await tine.appendMessage({
  sessionId: fork?.id ?? "",
  message: { role: Role.ASSISTANT, parts: [text("Yes: better be safe.")] },
});

for (const [name, id] of [
  ["session", sessionId],
  ["fork", fork?.id ?? ""],
] as const) {
  const { messages } = await tine.messagesForSession({ sessionId: id });
  const roles = messages.map(({ role }) => Role[role]?.toLowerCase());
  console.log(`${name}: ${roles.join(", ")}`);
}
const { session: now } = await tine.getSession({ sessionId });
console.log(`cost: ${Number(now?.totals?.costNanoUsd ?? 0n) / 1e9} USD`);
console.log(`events: ${(await seen).join(", ")}`);
transport.close();

function toolUse(use: (typeof uses)[number], state: ToolState) {
  return { kind: { case: "toolUse" as const, value: { ...use, state } } };
}

/** Collects the types of the session's events until the results of the tools are stored. */
async function watch(): Promise<string[]> {
  const types: string[] = [];
  const events = closeOnBreak((signal) =>
    tine.watchEvents({ sessionId, start: WatchStart.OLDEST }, { signal }),
  );
  for await (const { event } of events) {
    types.push(event?.type ?? "");
    if (event?.type === "message.appended" && event.role === Role.TOOL) break;
  }
  return types;
}
