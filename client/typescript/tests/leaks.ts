// Finds leaks: sockets and timers of this process.

import { readdirSync, readlinkSync } from "node:fs";

export interface Held {
  sockets: number;
  timers: number;
}

/** The number of open sockets and of timers that keep the process alive. */
export function held(): Held {
  let sockets = 0;
  for (const name of readdirSync("/proc/self/fd")) {
    try {
      if (readlinkSync(`/proc/self/fd/${name}`).startsWith("socket:")) sockets++;
    } catch {
      // the descriptor of the listing itself
    }
  }
  const timers = process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  return { sockets, timers };
}

const turn = () => new Promise<void>((done) => setImmediate(done));

/** Waits until the numbers are stable, because handles are closed in a later turn. */
export async function settled(): Promise<Held> {
  let last = held();
  for (let same = 0; same < 100; same++) {
    await turn();
    const now = held();
    if (now.sockets !== last.sockets || now.timers !== last.timers) same = 0;
    last = now;
  }
  return last;
}
