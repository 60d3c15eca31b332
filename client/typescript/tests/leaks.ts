// What this process holds.

import { readdirSync, readlinkSync } from "node:fs";

export interface Held {
  sockets: number;
  timers: number;
}

/** The sockets that are open and the timers that hold the process. */
export function held(): Held {
  let sockets = 0;
  for (const name of readdirSync("/proc/self/fd")) {
    try {
      if (readlinkSync(`/proc/self/fd/${name}`).startsWith("socket:")) sockets++;
    } catch {
      // the directory's own, closed by now
    }
  }
  const timers = process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  return { sockets, timers };
}

const turn = () => new Promise<void>((done) => setImmediate(done));

/** What it holds once nothing has changed for a while: closed handles go in a later turn. */
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
