// Runs programs of the package.

import { spawn } from "node:child_process";
import { join } from "node:path";

/** The directory of the build (../build.sh). */
export const ROOM = process.cwd();

export interface Outcome {
  code: number | null;
  output: string;
}

/** Runs `node PROGRAM ARGS…` until it ends, at most 30 s. */
export function runNode(
  program: string,
  args: string[] = [],
  environment: NodeJS.ProcessEnv = {},
): Promise<Outcome> {
  return run(process.execPath, [join(ROOM, "out", program), ...args], environment);
}

export function run(
  command: string,
  args: string[],
  environment: NodeJS.ProcessEnv = {},
  cwd = ROOM,
): Promise<Outcome> {
  return new Promise((done, fail) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...environment },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: 30_000,
    });
    let output = "";
    child.stdout.on("data", (text) => (output += text));
    child.stderr.on("data", (text) => (output += text));
    child.on("error", fail);
    child.on("close", (code) => done({ code, output }));
  });
}
