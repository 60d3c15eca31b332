// Starts tined, as the command line `tine` does. A client takes a lock, starts tined and holds the
// lock until it is ready, so many clients at once start only one. Without flock(1) there is no
// lock. That works too, because a second tined on the same socket ends by itself.

import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:fs";
import { access, type FileHandle, mkdir, open } from "node:fs/promises";
import { connect } from "node:net";
import { delimiter, join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { unavailable } from "./errors.js";

const READY_MS_MAX = 60_000;
const HELLO_MS_MAX = 1000;
const POLL_MS_MIN = 1; // tined is ready within a few milliseconds
const POLL_MS_MAX = 20;
const LEAVING_MS_MAX = 15_000; // a stopping tined waits for its clients for 6 s
const LEAVING_POLL_MS = 200;
const EXIT_IN_USE = 3;
const IDLE_EXIT = "30m";

/** Starts a tined on the socket and resolves when it listens. */
export async function startTined(socketPath: string): Promise<void> {
  const tined = await findTined();
  const directory = await makeStateDirectory();
  const lock = await Lock.take(join(directory, "start.lock"));
  try {
    if (!(await isListening(socketPath)))
      await launch(tined, socketPath, join(directory, "tined.log"));
  } finally {
    lock.release();
  }
}

/** Returns the path of the program: `named`, or the one in PATH. Rejects if there is none. */
export async function findTined(named = process.env["TINED"]): Promise<string> {
  if (process.platform !== "linux") throw unavailable("tined runs on Linux only");
  const { PATH: path = "" } = process.env;
  const places = named ? [named] : path.split(delimiter).map((place) => join(place, "tined"));
  for (const place of places) {
    try {
      await access(place, constants.X_OK);
      return resolve(place);
    } catch {
      // it is not there
    }
  }
  if (named === undefined || named === "") {
    throw unavailable("no tined runs, $TINED names none, and none is installed in PATH");
  }
  const from = named === process.env["TINED"] ? "$TINED" : "the option";
  throw unavailable(`no tined runs, and ${from} names none: ${named}`);
}

async function makeStateDirectory(): Promise<string> {
  const { XDG_STATE_HOME: state, HOME: home } = process.env;
  const base = state?.startsWith("/") ? state : home?.startsWith("/") && join(home, ".local/state");
  if (!base) {
    throw unavailable("no tined runs, and its log has no directory: set $HOME or $XDG_STATE_HOME");
  }
  const directory = join(base, "tine");
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw unavailable(`no tined runs, and ${directory} for its log cannot be made`, error);
  }
  return directory;
}

// Node has no flock(2). A process of flock(1) holds the lock while its standard input is open, so
// the lock is released when this process dies, too.
class Lock {
  readonly #holder: ChildProcess | undefined;

  private constructor(holder?: ChildProcess) {
    this.#holder = holder;
  }

  static take(path: string): Promise<Lock> {
    return new Promise((done) => {
      const holder = spawn("flock", [path, "sh", "-c", "echo; exec cat"], {
        stdio: ["pipe", "pipe", "ignore"],
      });
      holder.on("error", () => done(new Lock()));
      holder.on("exit", () => done(new Lock()));
      holder.stdin.on("error", () => {});
      holder.stdout.once("data", () => done(new Lock(holder)));
    });
  }

  release(): void {
    this.#holder?.stdin?.end();
    this.#holder?.stdout?.destroy();
  }
}

function isListening(path: string): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect({ path });
    const end = (answer: boolean) => {
      clearTimeout(timer);
      socket.destroy();
      done(answer);
    };
    const timer = setTimeout(end, HELLO_MS_MAX, false);
    // It waits for the hello, because a server that uses NNG pauses for 100 ms after a connection
    // that was closed without one.
    socket.once("data", () => end(true));
    socket.once("error", () => end(false));
    socket.once("close", () => end(false));
    socket.write(Uint8Array.of(0, 0x53, 0x50, 0, 0, 0x30, 0, 0));
  });
}

async function launch(tined: string, socketPath: string, logPath: string): Promise<void> {
  const log = await open(logPath, "a+", 0o600);
  try {
    const { size } = await log.stat();
    const giveUpAt = performance.now() + LEAVING_MS_MAX;
    for (;;) {
      const code = await untilReady(
        socketPath,
        spawnTined(tined, socketPath, logPath, log),
        logPath,
      );
      if (code === undefined) return;
      // The process that holds the socket is starting or stopping.
      const isInUse = code === EXIT_IN_USE && performance.now() < giveUpAt;
      if (!isInUse) throw unavailable(await lastWords(log, size, logPath));
      await delay(LEAVING_POLL_MS);
      if (await isListening(socketPath)) return;
    }
  } finally {
    await log.close();
  }
}

/** Returns the exit code of the process when it has ended. */
function spawnTined(
  tined: string,
  socketPath: string,
  logPath: string,
  log: FileHandle,
): Promise<number> {
  const { NOTIFY_SOCKET: _, ...environment } = process.env; // for this process only
  const child = spawn(tined, ["--socket", resolve(socketPath), "--log-file", logPath], {
    cwd: "/",
    detached: true, // in its own session
    stdio: ["ignore", log.fd, log.fd],
    env: { TINE_IDLE_EXIT: IDLE_EXIT, ...environment },
  });
  child.unref();
  return new Promise((done) => {
    child.once("error", () => done(-1));
    child.once("exit", (code) => done(code ?? -1));
  });
}

/** Resolves when a server listens; with the exit code if the process ended before. */
async function untilReady(
  socketPath: string,
  end: Promise<number>,
  logPath: string,
): Promise<number | undefined> {
  let code: number | undefined;
  void end.then((ended) => {
    code = ended;
  });
  const until = performance.now() + READY_MS_MAX;
  let pauseMs = POLL_MS_MIN;
  while (!(await isListening(socketPath))) {
    if (code !== undefined) return code;
    if (performance.now() > until) {
      throw unavailable(`tined was started but is not ready; see ${logPath}`);
    }
    await delay(pauseMs);
    pauseMs = Math.min(2 * pauseMs, POLL_MS_MAX);
  }
  return undefined;
}

/** Returns why tined ended, from its log. */
export async function lastWords(log: FileHandle, from: number, logPath: string): Promise<string> {
  const { bytesRead, buffer } = await log.read(Buffer.alloc(4096), 0, 4096, from);
  const [, words] = /tined: (.*)/.exec(buffer.toString("utf8", 0, bytesRead)) ?? [];
  return words ? `tined does not start: ${words}` : `tined was started and ended; see ${logPath}`;
}
