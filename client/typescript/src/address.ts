// Where a server listens.

import { lstatSync } from "node:fs";
import { dirname } from "node:path";
import { invalidArgument } from "./errors.js";

export type Address =
  | {
      readonly framing: "ipc";
      readonly path: string;
      /** The default in /tmp, where anybody could listen in tined's place. */
      readonly isInTmp?: boolean;
    }
  | { readonly framing: "tcp"; readonly host: string; readonly port: number };

const PATH_BYTES_MAX = 107; // what an address of the kernel holds
const GROUP_OR_OTHERS_WRITE = 0o022;

/** Understands `ipc://PATH` and `tcp://HOST:PORT`. */
export function addressOf(url: string): Address {
  if (url.startsWith("ipc://")) {
    const path = url.slice("ipc://".length);
    if (path === "") throw invalidArgument("the URL names no path of a socket: ipc://PATH");
    if (path.includes("\0")) throw invalidArgument("the path of the socket holds a NUL");
    const size = Buffer.byteLength(path);
    if (size > PATH_BYTES_MAX) {
      throw invalidArgument(
        `the path of the socket has ${size} bytes, and that of a Unix socket may have at most ` +
          `${PATH_BYTES_MAX}: ${path}`,
      );
    }
    return { framing: "ipc", path };
  }
  const [, host, port] = /^tcp:\/\/(\[[^\]]+\]|[^:/]+):([0-9]{1,5})$/.exec(url) ?? [];
  if (host === undefined || port === undefined || Number(port) > 0xffff) {
    throw invalidArgument("the URL is none of ipc://PATH and tcp://HOST:PORT");
  }
  return { framing: "tcp", host: host.replace(/^\[(.*)\]$/, "$1"), port: Number(port) };
}

/** The path of the event socket beside a request socket; undefined: it would be too long. */
export function eventsPathOf(path: string): string | undefined {
  const events = `${path.endsWith(".sock") ? path.slice(0, -".sock".length) : path}.events`;
  return Buffer.byteLength(events) <= PATH_BYTES_MAX ? events : undefined;
}

/** Where the command line looks without an option, and whether that is in /tmp. */
export function defaultPlace(): { url: string; isInTmp: boolean } {
  const { TINE_URL: url, TINE_SOCKET: socket, XDG_RUNTIME_DIR: runtime } = process.env;
  const named = (name: string) => ({ url: name, isInTmp: false });
  if (url) return named(url);
  if (socket) return named(/:\/\/|^embedded:/.test(socket) ? socket : `ipc://${socket}`);
  if (runtime?.startsWith("/")) return named(`ipc://${runtime}/tine/tine.sock`);
  return { url: `ipc:///tmp/tine-${process.geteuid?.()}/tine.sock`, isInTmp: true };
}

/** Asked before each connection: why not to connect, for others could listen there. */
export function distrustOf(address: Address): string | undefined {
  if (address.framing !== "ipc" || !address.isInTmp) return undefined;
  const directory = dirname(address.path);
  const found = lstatSync(directory, { throwIfNoEntry: false });
  if (!found) return undefined;
  const isOurs = found.uid === process.geteuid?.() || found.uid === 0;
  if (found.isDirectory() && isOurs && (found.mode & GROUP_OR_OTHERS_WRITE) === 0) return undefined;
  return `${directory} belongs to others, or others can write to it; name a URL`;
}
