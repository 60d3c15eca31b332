// A tined for tests, in a directory of its own. It keeps its store, so it can be killed and started
// again.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type Client, createClient } from "@connectrpc/connect";
import { createTransport, type TineTransport, type TransportOptions } from "@tine-store/client";
import { StoreService } from "@tine-store/client/v1";

/** The tree, and where its programs were built. */
export const ROOT = process.env["TINE_ROOT"] ?? join(process.cwd(), "../..");
export const BUILD = process.env["TINE_BUILD"] ?? join(ROOT, "build/release");
export const TINED = join(BUILD, "server/tined");

export type Tine = Client<typeof StoreService>;

export class Daemon {
  readonly directory = mkdtempSync(join(tmpdir(), "tine-ts-"));
  readonly socket = join(this.directory, "tine.sock");
  readonly url = `ipc://${this.socket}`;
  readonly #arguments: string[];
  readonly #transports: TineTransport[] = [];
  #process: ChildProcess | undefined;

  constructor(...args: string[]) {
    this.#arguments = args;
  }

  static async start(...args: string[]): Promise<Daemon> {
    const daemon = new Daemon(...args);
    await daemon.start();
    return daemon;
  }

  async start(): Promise<void> {
    const { NOTIFY_SOCKET: _, ...environment } = process.env;
    const place = ["--data", join(this.directory, "store"), "--socket", this.socket];
    const child = spawn(TINED, [...place, "--log-level", "error", ...this.#arguments], {
      stdio: ["ignore", "inherit", "inherit"],
      env: environment,
    });
    this.#process = child;
    while (!(await answers(this.socket))) {
      if (child.exitCode !== null) throw new Error(`tined ended with ${child.exitCode}`);
      await delay(10);
    }
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

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const end = once(child, "exit");
    child.kill(signal);
    await end;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async stop(): Promise<void> {
    for (const transport of this.#transports) transport.close();
    await this.kill();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

function answers(path: string): Promise<boolean> {
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

/** Creates a session and returns its id. */
export async function createSession(tine: Tine, slug = ""): Promise<string> {
  const { session } = await tine.createSession({
    session: { projectDir: "/work", model: { provider: "p", name: "m" }, slug },
  });
  return session?.id ?? "";
}
