// Runs a tined for tests, on a temporary store and socket.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { addressOf } from "./address.js";
import { unavailable } from "./errors.js";
import { findTined, lastWords } from "./start.js";
import { createTransport } from "./transport.js";

const READY_MS_MAX = 60_000;
const STOP_MS_MAX = 10_000;
const IDLE_EXIT = "1h"; // ends a tined whose test process was killed
const TMPDIR_BYTES_MAX = 60; // leaves room for the rest of the path

export interface TinedOptions {
  /** The path of the program. Default: $TINED, then the one in PATH. */
  tined?: string;
  /** Additional arguments of tined, such as `--ephemeral`. */
  args?: readonly string[];
  /** For store, socket and log; it is kept. Default: a temporary one, which `close` removes. */
  directory?: string;
  /** How long `stop` waits before it kills tined. Default: 10 s. */
  stopTimeoutMs?: number;
}

/**
 * A tined for tests. It runs between `start` and `stop`:
 *
 *     const tined = await Tined.start();
 *     after(() => tined.close());
 *     const tine = createClient(StoreService, createTransport(tined.url));
 *
 * It does not inherit TINE_ variables of this process. It does not keep the process alive, and it
 * is killed when the process exits. Linux only, like tined.
 */
export class Tined {
  readonly directory: string;
  readonly socket: string;
  /** For `createTransport`. */
  readonly url: string;
  readonly log: string;
  readonly #options: TinedOptions;
  #process: ChildProcess | undefined;
  #end: Promise<string | undefined> = Promise.resolve(undefined);

  /** Throws INVALID_ARGUMENT if the path of the directory is too long for a socket. */
  constructor(options: TinedOptions = {}) {
    this.#options = options;
    const isLong = Buffer.byteLength(tmpdir()) > TMPDIR_BYTES_MAX;
    this.directory = resolve(
      options.directory ?? mkdtempSync(join(isLong ? "/tmp" : tmpdir(), "tine-")),
    );
    this.socket = join(this.directory, "tine.sock");
    this.url = `ipc://${this.socket}`;
    this.log = join(this.directory, "tined.log");
    addressOf(this.url);
    if (leftovers.size === 0) process.on("exit", removeLeftovers);
    leftovers.add(this.#remove);
  }

  /** Creates one and starts it. */
  static async start(options: TinedOptions = {}): Promise<Tined> {
    const tined = new Tined(options);
    try {
      await tined.start();
    } catch (error) {
      await tined.close();
      throw error;
    }
    return tined;
  }

  /** The process id; undefined if it is not running. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /**
   * Starts it and resolves when it answers. It keeps the store of an earlier run. Rejects with the
   * reason why it does not start.
   */
  async start(): Promise<void> {
    if (this.#process) return;
    const program = await findTined(this.#options.tined);
    const log = await open(this.log, "a+", 0o600);
    try {
      const { size } = await log.stat();
      const child = spawn(program, this.#arguments(), {
        stdio: ["ignore", log.fd, log.fd],
        env: environment(),
      });
      child.unref();
      this.#process = child;
      this.#end = endOf(child);
      const why = await untilReady(this.url, this.#end);
      if (why === undefined) return;
      await this.kill();
      throw unavailable(why || (await lastWords(log, size, this.log)));
    } finally {
      await log.close();
    }
  }

  /** Stops it, and kills it after `stopTimeoutMs`. The store is kept for another `start`. */
  async stop(): Promise<void> {
    const child = this.#process;
    const timer = setTimeout(
      () => child?.kill("SIGKILL"),
      this.#options.stopTimeoutMs ?? STOP_MS_MAX,
    );
    await this.#signal("SIGTERM");
    clearTimeout(timer);
  }

  /** Kills it, like a crash. The store is kept for another `start`. */
  kill(): Promise<void> {
    return this.#signal("SIGKILL");
  }

  /** Stops it and removes its directory, if that is a temporary one. */
  async close(): Promise<void> {
    await this.stop();
    leftovers.delete(this.#remove);
    if (leftovers.size === 0) process.off("exit", removeLeftovers);
    this.#remove();
  }

  async #signal(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process;
    if (!child) return;
    this.#process = undefined;
    child.ref();
    child.kill(signal);
    await this.#end;
  }

  #arguments(): string[] {
    const { args = [] } = this.#options;
    const store = args.includes("--ephemeral") ? [] : ["--data", join(this.directory, "store")];
    return ["--socket", this.socket, ...store, ...args];
  }

  readonly #remove = (): void => {
    this.#process?.kill("SIGKILL");
    if (this.#options.directory !== undefined) return;
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 3 });
  };
}

// Clean up after those that are not closed when the process exits.
const leftovers = new Set<() => void>();

function removeLeftovers(): void {
  for (const remove of leftovers) remove();
}

function environment(): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(
    ([name]) => !name.startsWith("TINE_") && name !== "NOTIFY_SOCKET",
  );
  return { ...Object.fromEntries(own), TINE_IDLE_EXIT: IDLE_EXIT };
}

/** Resolves when the process has ended; with the reason if it could not be executed. */
function endOf(child: ChildProcess): Promise<string | undefined> {
  return new Promise((done) => {
    child.once("error", (error) => done(`tined does not start: ${error.message}`));
    child.once("exit", () => done(undefined));
  });
}

/** Resolves with undefined when it answers, else with the reason; "" if that is in its log. */
async function untilReady(
  url: string,
  end: Promise<string | undefined>,
): Promise<string | undefined> {
  const transport = createTransport(url);
  const isOver = new AbortController();
  const ended = end.then((why) => {
    isOver.abort();
    return why ?? "";
  });
  try {
    await transport.ready({ signal: isOver.signal, timeoutMs: READY_MS_MAX });
    return undefined;
  } catch (error) {
    return isOver.signal.aborted ? await ended : (error as Error).message;
  } finally {
    transport.close();
  }
}
