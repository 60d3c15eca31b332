// What the tests run against: a tined, and a server that misbehaves.

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

/** The tree, and where its programs were built. */
export const ROOT = process.env["TINE_ROOT"] ?? join(process.cwd(), "../..");
export const BUILD = process.env["TINE_BUILD"] ?? join(ROOT, "build/release");
export const TINED = join(BUILD, "server/tined");
process.env["TINED"] = TINED;

export type Tine = Client<typeof StoreService>;

/** A tined with clients of its own, which are closed with it. */
export class Daemon extends Tined {
  readonly #transports: TineTransport[] = [];

  static async run(...args: string[]): Promise<Daemon> {
    const daemon = new Daemon({ args: ["--log-level", "error", ...args] });
    await daemon.start();
    return daemon;
  }

  /** One that listens on tcp, too. */
  static async startTcp(): Promise<{ daemon: Daemon; url: string; token: string }> {
    const token = "a token of one line";
    const tokenFile = join(temporary(), "token");
    writeFileSync(tokenFile, `${token}\n`, { mode: 0o600 });
    const url = `tcp://127.0.0.1:${await freePort()}`;
    const daemon = await Daemon.run("--listen", url, "--token-file", tokenFile);
    // It listens on its Unix socket first.
    await daemon.transport({ token }, url).ready();
    return { daemon, url, token };
  }

  /** A client of it, which is closed with it. */
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

/** A port that is free, below the range from which the kernel takes ports by itself. */
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

/** Whether a server says hello there. */
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

/** A wire_peer: a server that is hostile, or answers as it is asked. */
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
      stdio: ["pipe", "pipe", "inherit"], // it ends with its standard input
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

/** A directory that is gone when the tests are. */
export function temporary(): string {
  const directory = mkdtempSync(join(tmpdir(), "tine-ts-"));
  directories.push(directory);
  return directory;
}

process.on("exit", () => {
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
});

/** The ConnectError that a call ends with. */
export async function failureOf(call: Promise<unknown>): Promise<ConnectError> {
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof ConnectError, String(error));
    return error;
  }
  return assert.fail("the call succeeded");
}

/** A request to append a user's text. */
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
