// Measures GetSession with this client and with @grpc/grpc-js, in turns: the latency of single
// calls and the throughput of 64 in flight. Prints one line of JSON (bench/languages/run):
//
//     node out/programs/bench.js --tine URL --grpc unix:PATH --session ID [--calls N]

import { parseArgs } from "node:util";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { credentials, makeGenericClientConstructor } from "@grpc/grpc-js";
import { createTransport } from "@tine-store/client";
import {
  type GetSessionRequest,
  GetSessionRequestSchema,
  type GetSessionResponse,
  GetSessionResponseSchema,
  StoreService,
} from "@tine-store/client/v1";

const TURN_CALLS = 30;
const IN_FLIGHT = 64;
const TURN_CALLS_AT_ONCE = 2000;

type Call = () => Promise<unknown>;

// Both sides use the same codec.
const GrpcClient = makeGenericClientConstructor(
  {
    getSession: {
      path: "/tine.v1.StoreService/GetSession",
      requestStream: false,
      responseStream: false,
      requestSerialize: (request: GetSessionRequest) =>
        Buffer.from(toBinary(GetSessionRequestSchema, request)),
      requestDeserialize: (bytes: Buffer) => fromBinary(GetSessionRequestSchema, bytes),
      responseSerialize: (response: GetSessionResponse) =>
        Buffer.from(toBinary(GetSessionResponseSchema, response)),
      responseDeserialize: (bytes: Buffer) => fromBinary(GetSessionResponseSchema, bytes),
    },
  },
  "tine.v1.StoreService",
);

/** Makes `count` calls and records their durations in microseconds. */
async function turn(call: Call, count: number, times: number[]): Promise<void> {
  for (let i = 0; i < count; i++) {
    const begun = process.hrtime.bigint();
    await call();
    times.push(Number(process.hrtime.bigint() - begun) / 1000);
  }
}

/** Makes calls with 64 in flight. Returns the total seconds. */
async function turnAtOnce(call: Call, count: number): Promise<number> {
  let left = count;
  const begun = performance.now();
  const worker = async () => {
    while (left-- > 0) await call();
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  return (performance.now() - begun) / 1000;
}

function median(times: number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0;
}

const { values } = parseArgs({
  options: {
    tine: { type: "string", default: "" },
    grpc: { type: "string", default: "" },
    session: { type: "string", default: "" },
    calls: { type: "string", default: "6000" },
  },
});
const calls = Number(values.calls);
const transport = createTransport(values.tine);
const tine = createClient(StoreService, transport);
const grpc = new GrpcClient(values.grpc, credentials.createInsecure());

const sides: { call: Call; times: number[]; seconds: number; done: number }[] = [
  () => tine.getSession({ sessionId: values.session }),
  () =>
    new Promise((done, fail) => {
      const request = create(GetSessionRequestSchema, { sessionId: values.session });
      grpc["getSession"]?.(request, (error: Error | null, response: unknown) => {
        if (error) fail(error);
        else done(response);
      });
    }),
].map((call) => ({ call, times: [], seconds: 0, done: 0 }));

for (const { call } of sides) await turn(call, Math.min(calls, 2000), []);
for (let done = 0; done < calls; done += TURN_CALLS) {
  for (const { call, times } of sides) await turn(call, TURN_CALLS, times);
}
for (const { call } of sides) await turnAtOnce(call, Math.min(calls, TURN_CALLS_AT_ONCE));
for (let done = 0; done < calls; done += TURN_CALLS_AT_ONCE) {
  for (const side of sides) {
    side.seconds += await turnAtOnce(side.call, TURN_CALLS_AT_ONCE);
    side.done += TURN_CALLS_AT_ONCE;
  }
}
const [ours, theirs] = sides;
if (!ours || !theirs) throw new Error("there are two sides");
console.log(
  JSON.stringify({
    language: "typescript",
    tine_p50_us: median(ours.times),
    grpc_p50_us: median(theirs.times),
    tine_rps_64: ours.done / ours.seconds,
    grpc_rps_64: theirs.done / theirs.seconds,
  }),
);
transport.close();
grpc.close();
