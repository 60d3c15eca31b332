// The servers for the tests: a tined, and a peer that misbehaves.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, ConnectError, createClient } from "@connectrpc/connect";
import { createTransport, type TineTransport, type TransportOptions } from "@tine-store/client";
import { Tined } from "@tine-store/client/testing";
import { Role, StoreService } from "@tine-store/client/v1";

/** The source tree and its build directory. */
export const ROOT = process.env["TINE_ROOT"] ?? join(process.cwd(), "../..");
export const BUILD = process.env["TINE_BUILD"] ?? join(ROOT, "build/release");
export const TINED = join(BUILD, "server/tined");
process.env["TINED"] = TINED;

export type Tine = Client<typeof StoreService>;

/** A tined, and clients that are closed with it. */
export class Daemon extends Tined {
  readonly #transports: TineTransport[] = [];

  static async run(...args: string[]): Promise<Daemon> {
    const daemon = new Daemon({ args: ["--log-level", "error", ...args] });
    await daemon.start();
    return daemon;
  }

  /** Starts one that listens on tcp too. */
  static async startTcp(): Promise<{ daemon: Daemon; url: string; token: string }> {
    const token = "a token of one line";
    const tokenFile = join(temporary(), "token");
    writeFileSync(tokenFile, `${token}\n`, { mode: 0o600 });
    const url = `tcp://127.0.0.1:${await freePort()}`;
    const daemon = await Daemon.run("--listen", url, "--token-file", tokenFile);
    // It may answer on its Unix socket before it listens on tcp.
    await daemon.transport({ token }, url).ready();
    return { daemon, url, token };
  }

  /** Returns a client that is closed with it. */
  client(options: TransportOptions = {}, url = this.url): Tine {
    return createClient(StoreService, this.transport(options, url));
  }

  transport(options: TransportOptions = {}, url = this.url): TineTransport {
    const transport = createTransport(url, options);
    this.#transports.push(transport);
    return transport;
  }

  override async close(): Promise<void> {
    for (const transport of this.#transports) transport.close();
    await super.close();
  }
}

/** Returns a free port below the range of ephemeral ports. */
export async function freePort(): Promise<number> {
  for (let i = 0; i < 1000; i++) {
    const port = randomInt(10_000, 30_000);
    const server = createServer();
    const isFree = await new Promise<boolean>((done) => {
      server.once("error", () => done(false));
      server.listen(port, "127.0.0.1", () => done(true));
    });
    if (!isFree) continue;
    await new Promise((done) => server.close(done));
    return port;
  }
  throw new Error("there is no free port");
}

/** Whether a server listens there and sends its hello. */
export function answers(path: string): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect({ path }, () => {
      socket.write(Uint8Array.of(0, 0x53, 0x50, 0, 0, 0x30, 0, 0));
    });
    socket.once("data", () => {
      socket.destroy();
      done(true);
    });
    socket.once("error", () => done(false));
    socket.once("close", () => done(false));
  });
}

/** A wire_peer: a server that misbehaves or answers on request. */
export class Peer {
  readonly socket: string;
  readonly url: string;
  readonly #process: ChildProcess;

  private constructor(socket: string, child: ChildProcess) {
    this.socket = socket;
    this.url = `ipc://${socket}`;
    this.#process = child;
  }

  static async start(mode: string, socket = join(temporary(), "peer.sock")): Promise<Peer> {
    const program = join(BUILD, "tests/wire_peer");
    const child = spawn(program, ["--socket", socket, "--mode", mode], {
      stdio: ["pipe", "pipe", "inherit"], // it ends when its standard input is closed
    });
    await once(child.stdout, "data");
    return new Peer(socket, child);
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  async stop(): Promise<void> {
    const end = once(this.#process, "exit");
    this.#process.kill();
    await end;
  }
}

const directories: string[] = [];

/** Creates a directory that is removed when the process exits. */
export function temporary(): string {
  const directory = mkdtempSync(join(tmpdir(), "tine-ts-"));
  directories.push(directory);
  return directory;
}

process.on("exit", () => {
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
});

/** Returns the ConnectError with which a call ends. */
export async function failureOf(call: Promise<unknown>): Promise<ConnectError> {
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof ConnectError, String(error));
    return error;
  }
  return assert.fail("the call succeeded");
}

/** Returns a request that appends a message of the user. */
export function appendOf(sessionId: string, text: string) {
  const part = { kind: { case: "text" as const, value: { text } } };
  return { sessionId, message: { role: Role.USER, parts: [part] } };
}

/** Creates a session and returns its id. */
export async function createSession(tine: Tine, slug = ""): Promise<string> {
  const { session } = await tine.createSession({
    session: { projectDir: "/work", model: { provider: "p", name: "m" }, slug },
  });
  return session?.id ?? "";
}
