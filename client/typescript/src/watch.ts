// Watching: the bus for speed, ListEvents for certainty (docs/wire.md, "Watching, for who writes a
// client"; client/c/watch.c is the same in C).
//
// ListEvents misses nothing: sequences of one store have no gaps and never repeat, also over
// restarts, and the instance id tells when it is another store. So where a watch stands is two
// fields. The bus tells at once but may lose. Hence the order: subscribe, then list, then take from
// the bus what follows the position; drop what is not past it; and where it does not follow, list
// again. Until the first message of a connection nobody knows whether the server counts the
// subscriber in, so until then the watch lists now and again. Without a bus it lists, and waits at
// the server for news.
//
// Everything happens while somebody waits for the next event. A watch that nobody asks for a while
// hangs up and takes its place up again when it is asked: one that was left behind by a plain
// `break` costs nothing.

import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { pause } from "./abort.js";
import { Backoff, now } from "./backoff.js";
import { canceled, undecodable } from "./errors.js";
import { Feed } from "./feed.js";
import {
  ListEventsRequestSchema,
  StatsRequestSchema,
  StatsResponseSchema,
  type WatchEventsRequest,
  WatchStart,
} from "./gen/tine/v1/store_pb.js";
import { BYTES, FieldReader, textCheck, textRead, VARINT, WireError } from "./wire.js";

const WAIT_MS_MAX_AT_ONCE = 30_000;
const REPLY_MS_MAX = 10_000; // beyond the wait
const PAGE_EVENTS_MAX = 1000;
const PAUSE_MS_MIN = 20;
const PAUSE_MS_MAX = 1000;
const START_ATTEMPTS_MAX = 5;
const FIRST_MESSAGE_MS_MAX = 100; // then a watch begins without it
const UNSURE_MS_MIN = 5; // between the listings until the first message …
const UNSURE_MS_MAX = 160; // … twice as long each time
const SUBSCRIBE_MS_MIN = 50;
const SUBSCRIBE_MS_MAX = 30_000;
const NEVER = 2n ** 64n;

export interface WatchLimits {
  /** How long a bus may be silent: three heartbeats. */
  readonly silenceMs: number;
  /** How long a watch that nobody asks keeps its connections. */
  readonly unaskedMs: number;
}

const LIMITS: WatchLimits = { silenceMs: 15_000, unaskedMs: 60_000 };

/** What a watch asks of its connection. */
export interface WatchHost {
  /** The path of the bus; undefined: there is none. */
  readonly eventsPath: string | undefined;
  /** Calls a method of StoreService by name, patiently or not. */
  call(
    method: string,
    body: Uint8Array,
    options: { timeoutMs?: number; isPatient: boolean; signal: AbortSignal },
  ): Promise<Uint8Array>;
  /** Rises with each connection. */
  connections(): number;
  /** Lets go of the connection until the next call. */
  disconnect(): void;
}

interface EventHead {
  sequence: bigint;
  previousSessionSequence: bigint;
  instanceId: string;
  type: string;
}

interface BusMessage {
  topic: string;
  head: EventHead;
  /** The encoded Event. */
  event: Uint8Array;
}

// The numbers of an Event's fields that are texts.
const EVENT_TEXTS: ReadonlySet<number> = new Set([3, 4, 5, 6, 7, 8, 12]);

interface Page {
  events: Uint8Array[];
  nextAfter: bigint;
  more: boolean;
  newest: bigint;
  instanceId: string;
}

export class Watch {
  readonly #host: WatchHost;
  readonly #request: WatchEventsRequest;
  readonly #signal: AbortSignal;
  readonly #limits: WatchLimits;
  readonly #topic: string; // what topics of the session begin with
  #after: bigint; // the sequence of the last event given out or left out
  #instanceId: string;
  #page: Page | undefined;
  #pageAt = 0;
  #pauseMs = 0; // after replies that came empty before their time

  #feed: Feed | undefined;
  #isBehind = true; // there may be events that the bus did not or will not tell of
  #toldNewest = 0n; // by the bus, when it told of a gap
  #heardAt = 0; // the last message came, or else the subscription was made
  #unsureMs = UNSURE_MS_MIN; // the next time between two listings
  #failures = 0; // of subscriptions, in a row
  #subscribeAfter = 0;
  #connections = 0; // that there had been
  #unasked: NodeJS.Timeout | undefined; // nobody waits for an event

  constructor(host: WatchHost, request: WatchEventsRequest, signal: AbortSignal, limits = LIMITS) {
    this.#limits = limits;
    this.#host = host;
    this.#request = request;
    this.#signal = signal;
    this.#topic = request.sessionId === "" ? "" : `session/${request.sessionId}/`;
    this.#after = request.afterSequence;
    this.#instanceId = request.instanceId;
    const onAbort = () => {
      clearTimeout(this.#unasked);
      this.#feed?.close();
    };
    signal.addEventListener("abort", onAbort, { once: true });
  }

  /**
   * Takes its place. The first page names the store, and says whether the position is one of its.
   * While the oldest event is being pruned it may be gone by the time it is asked for.
   */
  async begin(): Promise<void> {
    this.#feedKeep();
    await this.#feed?.settle(FIRST_MESSAGE_MS_MAX, this.#signal);
    const isAfter = this.#request.start === WatchStart.AFTER;
    for (let attempts = 1; ; attempts++) {
      if (!isAfter) await this.#findStart();
      try {
        await this.#pageFetch(/* isFirst= */ true);
        this.#unaskedSet();
        return;
      } catch (error) {
        const isGone = error instanceof ConnectError && error.code === Code.OutOfRange;
        if (!isGone || isAfter || attempts === START_ATTEMPTS_MAX) throw error;
      }
    }
  }

  async #findStart(): Promise<void> {
    const body = toBinary(StatsRequestSchema, create(StatsRequestSchema));
    const options = { isPatient: false, signal: this.#signal };
    const stats = fromBinary(StatsResponseSchema, await this.#host.call("Stats", body, options));
    const { oldestEventSequence: oldest, newestEventSequence: newest } = stats;
    this.#after = this.#request.start === WatchStart.OLDEST && oldest > 0n ? oldest - 1n : newest;
  }

  /** The encoded events. Ends only by an error, or when it is no longer asked. */
  async *events(): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for (;;) {
        clearTimeout(this.#unasked);
        const event = await this.#next();
        this.#unaskedSet();
        yield event;
      }
    } finally {
      clearTimeout(this.#unasked);
      this.#letGo();
    }
  }

  #unaskedSet(): void {
    this.#unasked = setTimeout(() => this.#letGo(), this.#limits.unaskedMs).unref();
  }

  async #next(): Promise<Uint8Array> {
    for (;;) {
      if (this.#signal.aborted) throw canceled(this.#signal.reason);
      const listed = this.#pageTake();
      if (listed) return listed;
      this.#feedKeep();
      if (this.#feed && !this.#isBehind) {
        const told = await this.#feedTake(this.#feed);
        if (told) return told;
      } else {
        await this.#pageFetch(/* isFirst= */ false);
      }
    }
  }

  #letGo(): void {
    this.#feed?.close();
    this.#host.disconnect();
  }

  // The next event of the page that is wanted.
  #pageTake(): Uint8Array | undefined {
    const page = this.#page;
    while (page && this.#pageAt < page.events.length) {
      const event = page.events[this.#pageAt++];
      if (!event) break;
      const head = headRead(event);
      this.#after = this.#pageAt === page.events.length ? page.nextAfter : head.sequence;
      if (head.type.startsWith(this.#request.typePrefix)) return event;
    }
    this.#page = undefined;
    return undefined;
  }

  // Subscribes if that is due. Everything must be listed once afterwards.
  #feedKeep(): void {
    const { eventsPath } = this.#host;
    if (this.#feed || eventsPath === undefined || now() < this.#subscribeAfter) return;
    this.#isBehind = true;
    this.#heardAt = now();
    this.#unsureMs = UNSURE_MS_MIN;
    this.#feed = new Feed(eventsPath);
  }

  // There is no bus, or it is of no use: goes on without, and tries again later.
  #feedDrop(): void {
    this.#feed?.close();
    this.#feed = undefined;
    this.#toldNewest = 0n;
    const ms = Math.min(SUBSCRIBE_MS_MIN * 2 ** Math.min(this.#failures++, 16), SUBSCRIBE_MS_MAX);
    this.#subscribeAfter = now() + ms * (1 - Math.random() / 4);
  }

  // The next event that the bus has; undefined: it is to be listed, or there is no bus now.
  async #feedTake(feed: Feed): Promise<Uint8Array | undefined> {
    while (this.#feed === feed && !this.#isBehind && !this.#signal.aborted) {
      const isUnsure = !feed.isLive;
      const left = this.#heardAt + this.#limits.silenceMs - now();
      const news = await feed.next(isUnsure ? Math.min(left, this.#unsureMs) : left, this.#signal);
      if (news instanceof Uint8Array) {
        this.#heardAt = now();
        if (!isUnsure) this.#failures = 0; // one message may be all that it ever sends
        const event = this.#messageTake(news);
        if (event) return event;
      } else if (news === "broken" || now() >= this.#heardAt + this.#limits.silenceMs) {
        this.#feedDrop();
      } else if (isUnsure) {
        this.#isBehind = true;
        this.#unsureMs = Math.min(this.#unsureMs * 2, UNSURE_MS_MAX);
      }
    }
    return undefined;
  }

  // The event of a message of the bus, if it is one that the watch wants now. All messages are
  // looked at: those of other sessions move the position too.
  #messageTake(message: Uint8Array): Uint8Array | undefined {
    let read: BusMessage;
    try {
      read = messageRead(message);
    } catch {
      this.#feedDrop();
      return undefined;
    }
    const { topic, head, event } = read;
    const isHeartbeat = topic === "heartbeat";
    const isMine = !isHeartbeat && topic.startsWith(this.#topic);
    const isKept = head.sequence > 0n;
    if (head.instanceId !== this.#instanceId) {
      this.#fallBehind(NEVER);
    } else if (isHeartbeat) {
      if (head.sequence > this.#after) this.#fallBehind(head.sequence);
    } else if (isKept && head.sequence <= this.#after) {
      return undefined; // listed already
    } else if (isKept && !this.#isNext(head, isMine)) {
      if (isMine) this.#fallBehind(head.sequence);
    } else {
      if (isKept) this.#after = head.sequence;
      if (isMine && head.type.startsWith(this.#request.typePrefix)) return event;
    }
    return undefined;
  }

  // Whether an event that has a sequence is the next one of the watch. One of a session says which
  // one was the session's last: between that and the position there is none of it. What a purged
  // session's watch gets, ListEvents says.
  #isNext(head: EventHead, isMine: boolean): boolean {
    const isOfSession = this.#topic !== "" && isMine;
    if (isOfSession && head.type === "session.purged") return false;
    if (head.sequence === this.#after + 1n) return true;
    const previous = head.previousSessionSequence;
    return isOfSession && previous > 0n && previous <= this.#after;
  }

  // A gap, up to the sequence that was told.
  #fallBehind(toldNewest: bigint): void {
    this.#isBehind = true;
    this.#toldNewest = toldNewest;
  }

  // Lists what comes after the position. Waits for news only where no bus would tell of them.
  async #pageFetch(isFirst: boolean): Promise<void> {
    let waitMs = this.#feed || isFirst ? 0 : WAIT_MS_MAX_AT_ONCE;
    if (waitMs > 0 && this.#host.eventsPath !== undefined) {
      waitMs = Math.max(0, Math.min(waitMs, Math.ceil(this.#subscribeAfter - now())));
    }
    const begun = now();
    const page = await this.#pageAsk(waitMs, isFirst);
    if (this.#connections !== this.#host.connections()) {
      this.#connections = this.#host.connections();
      this.#failures = 0; // whoever is there now may have a bus
    }
    this.#instanceId ||= page.instanceId;
    this.#pageReplace(page);
    if (page.events.length === 0 && !page.more && waitMs > 0) {
      await this.#pauseIfHurried(waitMs, begun);
    }
  }

  // A server that does not answer is left for another connection, and one that has too much to do is
  // waited for; but where the watch has not begun it is the caller who says how long to wait.
  async #pageAsk(waitMs: number, isFirst: boolean): Promise<Page> {
    const request = create(ListEventsRequestSchema, {
      afterSequence: this.#after,
      sessionId: this.#request.sessionId,
      instanceId: this.#instanceId,
      limit: PAGE_EVENTS_MAX,
      waitMs,
    });
    const body = toBinary(ListEventsRequestSchema, request);
    const limit = isFirst ? {} : { timeoutMs: waitMs + REPLY_MS_MAX };
    const backoff = new Backoff();
    for (;;) {
      const options = { ...limit, isPatient: !isFirst, signal: this.#signal };
      try {
        return pageRead(await this.#host.call("ListEvents", body, options));
      } catch (error) {
        const code = error instanceof ConnectError ? error.code : undefined;
        const isBusy = code === Code.ResourceExhausted;
        const isAway = code === Code.DeadlineExceeded || code === Code.Unavailable;
        if (isFirst || !(isAway || isBusy) || this.#signal.aborted) throw error;
        if (isBusy) await pause(backoff.next(), this.#signal);
        else this.#host.disconnect();
      }
    }
  }

  // Takes over a page: the one before was given out whole.
  #pageReplace(page: Page): void {
    this.#page = page;
    this.#pageAt = 0;
    if (page.events.length > 0) this.#pauseMs = 0;
    else this.#after = page.nextAfter;
    if (page.more) return;
    this.#isBehind = false;
    // The bus told of events that the store does not have: it is another's.
    if (this.#feed && page.newest < this.#toldNewest) this.#feedDrop();
    this.#toldNewest = 0n;
  }

  // A server with too many calls that wait answers at once, with nothing: it is not to be asked in
  // a loop. So does one that is about to stop.
  async #pauseIfHurried(askedMs: number, begun: number): Promise<void> {
    if (now() - begun > askedMs / 2) return;
    this.#pauseMs = Math.min(Math.max(this.#pauseMs * 2, PAUSE_MS_MIN), PAUSE_MS_MAX);
    await pause(this.#pauseMs, this.#signal);
  }
}

/** Takes a message of the bus apart. Throws WireError if it is none. */
export function messageRead(message: Uint8Array): BusMessage {
  const end = message.indexOf(0);
  if (end < 0) throw new WireError("no topic");
  const event = message.subarray(end + 1);
  return { topic: textRead(message.subarray(0, end)), head: headRead(event), event };
}

/** What is to be known of an encoded Event before it is decoded. Throws WireError if it is none. */
export function headRead(bytes: Uint8Array): EventHead {
  const head = { sequence: 0n, previousSessionSequence: 0n, instanceId: "", type: "" };
  const fields = new FieldReader(bytes);
  while (fields.next()) {
    if (fields.type === VARINT) {
      if (fields.number === 1) head.sequence = fields.value;
      if (fields.number === 2) head.previousSessionSequence = fields.value;
    } else if (fields.type === BYTES) {
      if (fields.number === 3) head.instanceId = textRead(fields.bytes());
      else if (fields.number === 5) head.type = textRead(fields.bytes());
      else if (EVENT_TEXTS.has(fields.number)) textCheck(fields.bytes());
    }
  }
  return head;
}

// A ListEventsResponse whose events stay bytes: they are decoded by the caller's own code.
function pageRead(bytes: Uint8Array): Page {
  const page: Page = { events: [], nextAfter: 0n, more: false, newest: 0n, instanceId: "" };
  try {
    const fields = new FieldReader(bytes);
    while (fields.next()) {
      if (fields.type === BYTES) {
        if (fields.number === 1) page.events.push(fields.bytes());
        if (fields.number === 6) page.instanceId = textRead(fields.bytes());
      } else if (fields.type === VARINT) {
        if (fields.number === 2) page.nextAfter = fields.value;
        if (fields.number === 3) page.more = fields.value !== 0n;
        if (fields.number === 5) page.newest = fields.value;
      }
    }
    for (const event of page.events) headRead(event);
  } catch (error) {
    throw undecodable(error);
  }
  return page;
}
