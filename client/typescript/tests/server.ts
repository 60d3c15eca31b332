// A server that records requests and lets the test handle each.

import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { FrameReader, helloOf, prefixBytes, prefixWrite, REP } from "../src/frame.js";
import { FieldReader } from "../src/wire.js";
import { temporary } from "./daemon.js";

export interface Received {
  method: string;
  operationId: string;
  timeoutMs: number;
  traceparent: string;
  token: string;
  sync: boolean;
  /** Answers with an encoded Response. */
  reply: (envelope: Uint8Array) => void;
  hangUp: () => void;
}

export class FakeServer {
  readonly socket = join(temporary(), "fake.sock");
  readonly url = `ipc://${this.socket}`;
  readonly received: Received[] = [];
  connections = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(onRequest: (request: Received, index: number) => void) {
    this.#server = createServer((socket) => {
      this.connections++;
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
      socket.on("error", () => {});
      socket.write(helloOf(REP));
      let helloLeft = 8;
      const reader = new FrameReader("ipc");
      socket.on("data", (chunk: Buffer) => {
        const taken = Math.min(helloLeft, chunk.length);
        helloLeft -= taken;
        reader.take(chunk.subarray(taken), (payload) => {
          const request = requestOf(socket, payload);
          this.received.push(request);
          onRequest(request, this.received.length - 1);
        });
      });
    });
  }

  static async start(onRequest: (request: Received, index: number) => void): Promise<FakeServer> {
    const fake = new FakeServer(onRequest);
    await new Promise<void>((done) => fake.#server.listen(fake.socket, done));
    return fake;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((done) => this.#server.close(done));
  }
}

function requestOf(socket: Socket, payload: Uint8Array): Received {
  const texts = ["", "", "", "", "", ""];
  let timeoutMs = 0;
  let sync = false;
  const fields = new FieldReader(payload.subarray(4));
  while (fields.next()) {
    if (fields.number === 3) timeoutMs = Number(fields.value);
    else if (fields.number === 6) sync = fields.value === 1n;
    else if (fields.number < 6) texts[fields.number] = Buffer.from(fields.bytes()).toString();
  }
  const [, method = "", operationId = "", , traceparent = "", token = ""] = texts;
  const reply = (envelope: Uint8Array) => {
    const prefix = Buffer.alloc(prefixBytes("ipc"));
    prefixWrite(prefix, "ipc", 4 + envelope.length);
    socket.write(Buffer.concat([prefix, payload.subarray(0, 4), envelope]));
  };
  const hangUp = () => socket.destroy();
  return { method, operationId, timeoutMs, traceparent, token, sync, reply, hangUp };
}

/** A successful Response with an empty body. */
export const OK = Uint8Array.of(0x7a, 0);

/** A successful Response with a body of less than 128 bytes. */
export function success(body: Uint8Array): Uint8Array {
  return Uint8Array.of(0x7a, body.length, ...body);
}

/** A Response with a status. */
export function failure(code: number, reason: string): Uint8Array {
  const text = Buffer.from(reason);
  return Uint8Array.of(0x0a, text.length + 4, 0x08, code, 0x1a, text.length, ...text);
}
