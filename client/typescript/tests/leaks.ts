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

/** Waits until this process holds what it held before. Closed handles go in a later turn. */
export async function untilHeld(before: Held): Promise<Held> {
  let now = held();
  for (let turn = 0; turn < 10_000 && now.sockets + now.timers > before.sockets + before.timers; ) {
    await new Promise((done) => setImmediate(done));
    now = held();
    turn++;
  }
  return now;
}
