// The address of a server: URLs and defaults.

import { lstatSync } from "node:fs";
import { dirname } from "node:path";
import { invalidArgument } from "./errors.js";

export type Address =
  | {
      readonly framing: "ipc";
      readonly path: string;
      /** The default in /tmp, where other users could listen. */
      readonly isInTmp?: boolean;
    }
  | { readonly framing: "tcp"; readonly host: string; readonly port: number };

const PATH_BYTES_MAX = 107; // the kernel's limit
const GROUP_OR_OTHERS_WRITE = 0o022;

/** Parses `ipc://PATH` or `tcp://HOST:PORT`. Throws INVALID_ARGUMENT. */
export function addressOf(url: string): Address {
  if (url.startsWith("ipc://")) {
    const path = url.slice("ipc://".length);
    if (path === "") throw invalidArgument("the URL has no path; it must be ipc://PATH");
    if (path.includes("\0")) throw invalidArgument("the path of the socket contains a NUL");
    const size = Buffer.byteLength(path);
    if (size > PATH_BYTES_MAX) {
      throw invalidArgument(
        `the path of the socket has ${size} bytes; a Unix socket allows at most ` +
          `${PATH_BYTES_MAX}: ${path}`,
      );
    }
    return { framing: "ipc", path };
  }
  const [, host, port] = /^tcp:\/\/(\[[^\]]+\]|[^:/]+):([0-9]{1,5})$/.exec(url) ?? [];
  if (host === undefined || port === undefined || Number(port) > 0xffff) {
    throw invalidArgument("the URL is neither ipc://PATH nor tcp://HOST:PORT");
  }
  return { framing: "tcp", host: host.replace(/^\[(.*)\]$/, "$1"), port: Number(port) };
}

/** The path of the event socket beside a request socket; undefined if it would be too long. */
export function eventsPathOf(path: string): string | undefined {
  const events = `${path.endsWith(".sock") ? path.slice(0, -".sock".length) : path}.events`;
  return Buffer.byteLength(events) <= PATH_BYTES_MAX ? events : undefined;
}

/** The default URL, and whether it is in /tmp. */
export function defaultPlace(): { url: string; isInTmp: boolean } {
  const { TINE_URL: url, TINE_SOCKET: socket, XDG_RUNTIME_DIR: runtime } = process.env;
  const named = (name: string) => ({ url: name, isInTmp: false });
  if (url) return named(url);
  if (socket) return named(/:\/\/|^embedded:/.test(socket) ? socket : `ipc://${socket}`);
  if (runtime?.startsWith("/")) return named(`ipc://${runtime}/tine/tine.sock`);
  return { url: `ipc:///tmp/tine-${process.geteuid?.()}/tine.sock`, isInTmp: true };
}

/** Called before each connection. Returns why it is unsafe, if other users could listen there. */
export function distrustOf(address: Address): string | undefined {
  if (address.framing !== "ipc" || !address.isInTmp) return undefined;
  const directory = dirname(address.path);
  const found = lstatSync(directory, { throwIfNoEntry: false });
  if (!found) return undefined;
  const isOurs = found.uid === process.geteuid?.() || found.uid === 0;
  if (found.isDirectory() && isOurs && (found.mode & GROUP_OR_OTHERS_WRITE) === 0) return undefined;
  return `${directory} belongs to others, or others can write to it; name a URL`;
}
