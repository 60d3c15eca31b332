// The Connect transport.

import { randomUUID } from "node:crypto";
import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodStreaming,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import {
  Code,
  type ContextValues,
  createContextValues,
  type Interceptor,
  type StreamResponse,
  type Transport,
  type UnaryResponse,
} from "@connectrpc/connect";
import { runStreamingCall, runUnaryCall } from "@connectrpc/connect/protocol";
import { abortIgnore, abortListen } from "./abort.js";
import { type Address, addressOf, defaultPlace, eventsPathOf } from "./address.js";
import { Calls, TIMER_MS_MAX } from "./call.js";
import {
  canceled,
  clientClosed,
  deadlineExceeded,
  errorOf,
  invalidArgument,
  undecodable,
} from "./errors.js";
import { type WatchEventsRequest, WatchEventsRequestSchema } from "./gen/tine/v1/store_pb.js";
import { Link, type LinkOptions } from "./link.js";
import { type ReadyOptions, untilReady } from "./ready.js";
import { startTined } from "./start.js";
import { Watch, type WatchHost } from "./watch.js";
import { BYTES, varintSize, varintWrite } from "./wire.js";

const SERVICE = "/tine.v1.StoreService/";
// The server does not remember its operation id, because it stores nothing.
const BROADCAST = `${SERVICE}BroadcastEvent`;
const WATCH = `${SERVICE}WatchEvents`;
const OPERATION_ID = "tine-operation-id";

export interface TransportOptions {
  /** The content of the server's token file; needed for tcp. */
  token?: string;
  /** Start a tined ($TINED, or the one in PATH) if none is running. For `ipc://`, on Linux. */
  start?: boolean;
  /**
   * How long to retry a call when the connection breaks or the server answers UNAVAILABLE. A call
   * with a deadline is retried until then. A retry has the same operation id. Default: 0, no
   * retries.
   */
  retryMs?: number;
  /** The timeout of calls without one. */
  defaultTimeoutMs?: number;
  interceptors?: Interceptor[];
}

/** A Connect transport to a tined. It connects when a call needs it. */
export interface TineTransport extends Transport {
  /** The server's address. */
  readonly url: string;
  /**
   * Waits until the daemon answers. Starts it first if the option `start` is set. Rejects with the
   * reason why it does not answer: after `timeoutMs`, or at once if waiting cannot help (tined
   * cannot be started, the token is wrong, the transport is closed). An aborted `signal` is
   * CANCELED.
   */
  ready(options?: ReadyOptions): Promise<void>;
  /** Closes the connection. Pending and later calls, and watches, end with CANCELED. */
  close(): void;
}

/**
 * Creates a transport for `createClient(StoreService, transport)`. The URL is `ipc://PATH` or
 * `tcp://HOST:PORT`; the default is `$TINE_URL`, then `$TINE_SOCKET`, then tined's default socket.
 * Throws INVALID_ARGUMENT if the URL is invalid or the path of the socket has more than 107 bytes.
 * The transport connects at the first call. At most 64 calls are in flight; further calls wait.
 */
export function createTransport(url?: string, options: TransportOptions = {}): TineTransport {
  return new Channel(url ? { url, isInTmp: false } : defaultPlace(), options);
}

class Channel implements TineTransport {
  readonly url: string;
  readonly #options: TransportOptions;
  readonly #address: Address;
  readonly #link: Link;
  readonly #calls: Calls;
  readonly #closed = new AbortController();
  readonly #watches = new Set<AbortController>();

  constructor(place: { url: string; isInTmp: boolean }, options: TransportOptions) {
    this.url = place.url;
    this.#options = options;
    const address = addressOf(place.url);
    this.#address = address.framing === "ipc" ? { ...address, isInTmp: place.isInTmp } : address;
    this.#link = new Link(this.#linkOptions());
    this.#calls = new Calls(this.#link);
  }

  ready({ signal, timeoutMs = 0 }: ReadyOptions = {}): Promise<void> {
    const request = {
      method: `${SERVICE}Health`,
      body: new Uint8Array(0),
      operationId: "",
      traceparent: "",
      token: this.#options.token ?? "",
      timeoutMs: timeoutMs > 0 ? timeoutMs : undefined,
      signal,
      isRepeatable: true,
      retryMs: 0,
    };
    return untilReady(this.#link, this.#calls, request, this.#closed.signal);
  }

  close(): void {
    this.#closed.abort();
    this.#calls.close();
    for (const watch of this.#watches) watch.abort(clientClosed());
  }

  unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
    header: HeadersInit | undefined,
    input: MessageInitShape<I>,
    contextValues?: ContextValues,
  ): Promise<UnaryResponse<I, O>> {
    const timeout = this.#timeoutOf(timeoutMs);
    let headers = header && new Headers(header);
    const message = create(method.input, input);
    const { interceptors } = this.#options;
    if (!interceptors?.length) return this.#call(method, message, headers, timeout, signal);
    // Before the interceptors: one that repeats the call then repeats the id.
    if (!isRead(method) && !headers?.has(OPERATION_ID)) {
      headers ??= new Headers();
      headers.set(OPERATION_ID, randomUUID());
    }
    return runUnaryCall<I, O>({
      interceptors,
      ...limitsOf(timeout, signal),
      req: { ...this.#requestOf(method, headers, contextValues), stream: false, method, message },
      next: (request) =>
        this.#call(method, request.message, request.header, timeout, request.signal),
    });
  }

  stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodStreaming<I, O>,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
    header: HeadersInit | undefined,
    input: AsyncIterable<MessageInitShape<I>>,
    contextValues?: ContextValues,
  ): Promise<StreamResponse<I, O>> {
    const timeout = this.#timeoutOf(timeoutMs);
    const headers = header && new Headers(header);
    const { interceptors } = this.#options;
    const response = interceptors?.length
      ? runStreamingCall<I, O>({
          interceptors,
          ...limitsOf(timeout, signal),
          req: {
            ...this.#requestOf(method, headers, contextValues),
            stream: true,
            method,
            message: input,
          },
          next: (request) =>
            this.#watch(method, request.message, request.header, timeout, request.signal),
        })
      : this.#watch(method, input, headers, timeout, signal);
    response.catch(() => {}); // the error is for the iterator, which the caller may not use
    return response;
  }

  // Connect's rule: zero and less mean no timeout, even if there is a default.
  #timeoutOf(timeoutMs: number | undefined): number | undefined {
    const value = timeoutMs ?? this.#options.defaultTimeoutMs;
    return value === undefined || value <= 0 ? undefined : value;
  }

  #requestOf(method: DescMethod, header: Headers | undefined, values: ContextValues | undefined) {
    return {
      service: method.parent,
      requestMethod: "POST",
      url: this.url + pathOf(method),
      header: header ?? new Headers(),
      contextValues: values ?? createContextValues(),
    };
  }

  async #call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    message: MessageShape<I>,
    header: Headers | undefined,
    timeoutMs: number | undefined,
    signal: AbortSignal | undefined,
  ): Promise<UnaryResponse<I, O>> {
    const path = pathOf(method);
    const operationId = header?.get(OPERATION_ID) ?? (isRead(method) ? "" : randomUUID());
    const bytes = await this.#calls.call({
      method: path,
      body: encode(method.input, message),
      operationId,
      traceparent: header?.get("traceparent") ?? "",
      token: header?.get("tine-token") ?? this.#options.token ?? "",
      sync: header?.get("tine-sync") === "1",
      timeoutMs,
      signal,
      isRepeatable: isRead(method) || (operationId !== "" && path !== BROADCAST),
      retryMs: this.#options.retryMs ?? 0,
    });
    return new UnaryReply(method, decode(method.output, bytes));
  }

  async #watch<I extends DescMessage, O extends DescMessage>(
    method: DescMethodStreaming<I, O>,
    input: AsyncIterable<MessageInitShape<I>>,
    header: Headers | undefined,
    timeoutMs: number | undefined,
    signal: AbortSignal | undefined,
  ): Promise<StreamResponse<I, O>> {
    if (pathOf(method) !== WATCH) {
      const message = `there is no stream ${pathOf(method)}; there is ${WATCH}`;
      throw errorOf(Code.Unimplemented, "UNIMPLEMENTED", message);
    }
    const request = await requestOf(method, input);
    if (this.#closed.signal.aborted) throw clientClosed();
    if (signal?.aborted) throw canceled(signal.reason);
    const stop = new AbortController();
    const { host, calls } = this.#watchCalls(stop.signal, header);
    const end = this.#linkEnd(stop, signal, timeoutMs, calls);
    const watch = new Watch(host, request, stop.signal);
    try {
      await watch.begin();
    } catch (error) {
      end();
      throw error;
    }
    const message = (async function* () {
      try {
        for await (const event of watch.events()) yield decode(method.output, wrap(event));
      } finally {
        end();
      }
    })();
    leftWatches.register(message, stop);
    return {
      stream: true,
      service: method.parent,
      method,
      header: new Headers(),
      trailer: new Headers(),
      message,
    };
  }

  // Aborts the watch by the caller's signal, at its deadline, or with the transport. The caller
  // calls the returned function when the watch has ended by itself.
  #linkEnd(
    stop: AbortController,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
    calls: Calls,
  ): () => void {
    const onAbort = () => stop.abort(canceled(signal?.reason));
    const onTime = () => stop.abort(deadlineExceeded(true));
    const hasDeadline = timeoutMs !== undefined && timeoutMs <= TIMER_MS_MAX; // 24 days
    const timer = hasDeadline ? setTimeout(onTime, timeoutMs).unref() : undefined;
    abortListen(signal, onAbort);
    this.#watches.add(stop);
    const end = () => {
      clearTimeout(timer);
      abortIgnore(signal, onAbort);
      this.#watches.delete(stop);
      calls.close(stop.signal.aborted ? canceled(stop.signal.reason) : undefined);
    };
    stop.signal.addEventListener("abort", end);
    return end;
  }

  // A waiting ListEvents would occupy one of the 64 slots of the shared connection.
  #watchCalls(signal: AbortSignal, header: Headers | undefined) {
    const link = new Link(this.#linkOptions());
    const calls = new Calls(link);
    const { framing } = this.#address;
    const host: WatchHost = {
      eventsPath: framing === "ipc" ? eventsPathOf(this.#address.path) : undefined,
      call: (method, body, { timeoutMs, isPatient }) =>
        calls.call({
          method: SERVICE + method,
          body,
          operationId: "",
          traceparent: header?.get("traceparent") ?? "",
          token: header?.get("tine-token") ?? this.#options.token ?? "",
          timeoutMs,
          signal,
          isRepeatable: true,
          retryMs: isPatient ? Number.POSITIVE_INFINITY : (this.#options.retryMs ?? 0),
        }),
      connections: () => link.connections,
      disconnect: () => link.disconnect("nobody waits for an event"),
    };
    return { host, calls };
  }

  #linkOptions(): LinkOptions {
    const address = this.#address;
    if (!this.#options.start) return { address };
    if (address.framing !== "ipc") throw invalidArgument("tined is started on ipc://PATH only");
    return { address, start: () => startTined(address.path) };
  }
}

// A stream that was left by a plain `break` is not notified. It ends when it is garbage-collected.
const leftWatches = new FinalizationRegistry((stop: AbortController) => {
  stop.abort(canceled(undefined));
});

function limitsOf(timeoutMs: number | undefined, signal: AbortSignal | undefined) {
  return { ...(timeoutMs === undefined ? {} : { timeoutMs }), ...(signal ? { signal } : {}) };
}

// Headers are created on demand: that takes longer than the rest of the reply.
class UnaryReply<I extends DescMessage, O extends DescMessage> implements UnaryResponse<I, O> {
  readonly stream = false;
  readonly method: DescMethodUnary<I, O>;
  readonly message: MessageShape<O>;
  #header: Headers | undefined;
  #trailer: Headers | undefined;

  constructor(method: DescMethodUnary<I, O>, message: MessageShape<O>) {
    this.method = method;
    this.message = message;
  }

  get service() {
    return this.method.parent;
  }

  get header(): Headers {
    this.#header ??= new Headers();
    return this.#header;
  }

  get trailer(): Headers {
    this.#trailer ??= new Headers();
    return this.#trailer;
  }
}

function isRead(method: DescMethod): boolean {
  return method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
}

const paths = new WeakMap<DescMethod, string>();

function pathOf(method: DescMethod): string {
  let path = paths.get(method);
  if (path === undefined) {
    path = `/${method.parent.typeName}/${method.name}`;
    paths.set(method, path);
  }
  return path;
}

function encode<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): Uint8Array {
  try {
    return toBinary(schema, message);
  } catch (error) {
    throw invalidArgument(`the request cannot be encoded: ${(error as Error).message}`, error);
  }
}

function decode<Desc extends DescMessage>(schema: Desc, bytes: Uint8Array): MessageShape<Desc> {
  try {
    return fromBinary(schema, bytes);
  } catch (error) {
    throw undecodable(error);
  }
}

// Encoded and decoded, because the caller's generated code may not be this package's.
async function requestOf<I extends DescMessage>(
  method: DescMethodStreaming<I, DescMessage>,
  input: AsyncIterable<MessageInitShape<I>>,
): Promise<WatchEventsRequest> {
  for await (const init of input) {
    return decode(WatchEventsRequestSchema, encode(method.input, create(method.input, init)));
  }
  throw invalidArgument("WatchEvents takes one request");
}

// Encodes a WatchEventsResponse with an encoded Event.
function wrap(event: Uint8Array): Uint8Array {
  const out = new Uint8Array(1 + varintSize(event.length) + event.length);
  out[0] = (1 << 3) | BYTES;
  out.set(event, varintWrite(out, 1, event.length));
  return out;
}
