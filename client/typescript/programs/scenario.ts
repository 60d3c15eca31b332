// Runs the steps of tests/wire/scenario.json and prints one line per step:
//
//     node out/programs/scenario.js --url URL --peer URL SCENARIO.json > TRANSCRIPT

import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import {
  type DescMessage,
  type DescMethod,
  fromJson,
  type JsonObject,
  type JsonValue,
  type MessageShape,
  toJson,
} from "@bufbuild/protobuf";
import { ConnectError, createClient } from "@connectrpc/connect";
import { closeOnBreak, createTransport, reason } from "@tine-store/client";
import { StoreService } from "@tine-store/client/v1";

interface Step {
  id: string;
  call: string;
  request: JsonObject;
  save?: Record<string, string>;
  operation_id?: string;
  traceparent?: string;
  timeout_ms?: number;
  token?: string;
  via?: "peer";
  cancel_ms?: number;
  watch?: { events: number };
  repeat?: { name: string; count: number };
  generate?: { field: string; byte: string; count: number };
}

// The type of any call of a client.
type AnyCall = (
  request: unknown,
  options: { headers: Headers; timeoutMs?: number; signal?: AbortSignal },
) => unknown;

const saved = new Map<string, string>();

function expandText(text: string): string {
  return text.replace(/\$\{([^}]+)\}/g, (_, name: string) => {
    const value = saved.get(name);
    if (value === undefined) throw new Error(`no step has saved ${name}`);
    return value;
  });
}

function expand<T extends JsonValue>(value: T): T;
function expand(value: JsonValue): JsonValue {
  if (typeof value === "string") return expandText(value);
  if (Array.isArray(value)) return value.map((inner) => expand(inner));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, expand(inner)]));
}

/** For a path such as `messages.0.id`, returns the object and the last name. */
function placeOf(value: JsonValue, path: string): [JsonObject, string] {
  const names = path.split(".");
  const last = names.pop() ?? "";
  let place: JsonValue | undefined = value;
  for (const name of names) place = (place as JsonObject | undefined)?.[name];
  if (typeof place !== "object" || place === null) throw new Error(`there is no ${path}`);
  return [place as JsonObject, last];
}

function requestOf(step: Step): JsonObject {
  const request = expand(step.request);
  if (step.generate) {
    const [place, name] = placeOf(request, step.generate.field);
    place[name] = step.generate.byte.repeat(step.generate.count);
  }
  return request;
}

function optionsOf(step: Step) {
  const headers = new Headers();
  if (step.operation_id !== undefined) {
    headers.set("tine-operation-id", expandText(step.operation_id));
  }
  if (step.traceparent !== undefined) headers.set("traceparent", step.traceparent);
  if (step.token !== undefined) headers.set("tine-token", step.token);
  return {
    headers,
    ...(step.timeout_ms === undefined ? {} : { timeoutMs: step.timeout_ms }),
    ...(step.cancel_ms === undefined ? {} : { signal: AbortSignal.timeout(step.cancel_ms) }),
  };
}

async function replyOf(step: Step, method: DescMethod, call: AnyCall): Promise<JsonValue> {
  const request: MessageShape<DescMessage> = fromJson(method.input, requestOf(step));
  const options = optionsOf(step);
  if (method.methodKind === "unary") {
    const reply = (await call(request, options)) as MessageShape<DescMessage>;
    return toJson(method.output, reply);
  }
  const events: JsonValue[] = [];
  const count = step.watch?.events ?? 1;
  const open = (signal: AbortSignal) => {
    const any = AbortSignal.any([signal, ...(options.signal ? [options.signal] : [])]);
    return call(request, { ...options, signal: any }) as AsyncIterable<MessageShape<DescMessage>>;
  };
  for await (const response of closeOnBreak(open)) {
    const { event } = toJson(method.output, response) as JsonObject;
    events.push(event ?? null);
    if (events.length === count) break;
  }
  return { events };
}

async function run(step: Step, id: string, call: AnyCall): Promise<void> {
  const method = StoreService.methods.find(({ name }) => name === step.call);
  if (!method) throw new Error(`there is no call ${step.call}`);
  const line = { step: id, call: step.call, code: 0, reason: "", message: "", reply: null };
  try {
    const reply = await replyOf(step, method, call);
    console.log(JSON.stringify({ ...line, reply }));
    for (const [name, path] of Object.entries(step.save ?? {})) {
      const [place, last] = placeOf(reply, path);
      saved.set(name, String(place[last]));
    }
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    const { code, rawMessage: message } = error;
    console.log(JSON.stringify({ ...line, code, reason: reason(error), message }));
  }
}

const { values, positionals } = parseArgs({
  options: { url: { type: "string" }, peer: { type: "string" } },
  allowPositionals: true,
});
const [file] = positionals;
if (!values.url || !values.peer || !file) {
  console.error("usage: scenario --url URL --peer URL SCENARIO.json");
  process.exit(2);
}
const steps: Step[] = JSON.parse(readFileSync(file, "utf8"));
const transports = { tine: createTransport(values.url), peer: createTransport(values.peer) };
const tine = createClient(StoreService, transports.tine);
const peer = createClient(StoreService, transports.peer);
for (const step of steps) {
  const client = (step.via === "peer" ? peer : tine) as unknown as Record<string, AnyCall>;
  const call = client[step.call.charAt(0).toLowerCase() + step.call.slice(1)];
  if (!call) throw new Error(`the client has no ${step.call}`);
  for (let i = 0; i < (step.repeat?.count ?? 1); i++) {
    if (step.repeat) saved.set(step.repeat.name, String(i));
    await run(step, step.repeat ? `${step.id}/${i}` : step.id, call);
  }
}
transports.tine.close();
transports.peer.close();
