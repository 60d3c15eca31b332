// A watch: the bus for speed, ListEvents for certainty (docs/wire.md).
//
// ListEvents misses nothing. The sequences of a store have no gaps and never repeat, even across
// restarts, and the instance id identifies the store. So the position of a watch consists of two
// fields. The bus delivers at once but may lose messages. Therefore a watch subscribes first, then
// lists, then takes from the bus the events that directly follow its position. It drops older
// events, and after a gap it lists again. Until the first message of a subscription it is unknown
// whether the server has registered the subscriber, so until then the watch lists from time to
// time. Without a bus it calls ListEvents with wait_ms.
//
// The watch works only while the caller waits for the next event. If nobody waits for a while, it
// disconnects, and it goes on from its position when it is called again. So a watch that was left
// by a plain `break` costs nothing.

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
const REPLY_MS_MAX = 10_000; // in addition to the wait
const PAGE_EVENTS_MAX = 1000;
const PAUSE_MS_MIN = 20;
const PAUSE_MS_MAX = 1000;
const START_ATTEMPTS_MAX = 5;
const FIRST_MESSAGE_MS_MAX = 100; // then the watch begins without it
const UNSURE_MS_MIN = 5; // between listings until the first message
const UNSURE_MS_MAX = 160; // doubles up to this
const SUBSCRIBE_MS_MIN = 50;
const SUBSCRIBE_MS_MAX = 30_000;
const NEVER = 2n ** 64n;

export interface WatchLimits {
  /** The maximum silence of the bus: three heartbeats. */
  readonly silenceMs: number;
  /** How long the connections are kept while nobody waits for an event. */
  readonly unaskedMs: number;
}

const LIMITS: WatchLimits = { silenceMs: 15_000, unaskedMs: 60_000 };

/** What a watch needs from its connection. */
export interface WatchHost {
  /** The path of the bus; undefined if there is none. */
  readonly eventsPath: string | undefined;
  /** Calls a method of StoreService. With `isPatient` it waits for a server. */
  call(
    method: string,
    body: Uint8Array,
    options: { timeoutMs?: number; isPatient: boolean; signal: AbortSignal },
  ): Promise<Uint8Array>;
  /** The number of connections so far. */
  connections(): number;
  /** Closes the connection until the next call. */
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

// The numbers of the string fields of an Event.
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
  readonly #topic: string; // the prefix of the session's topics
  #after: bigint; // the sequence of the last event that was returned or skipped
  #instanceId: string;
  #page: Page | undefined;
  #pageAt = 0;
  #pauseMs = 0; // after empty replies that came too early

  #feed: Feed | undefined;
  #isBehind = true; // there may be events that the bus does not deliver
  #toldNewest = 0n; // the newest sequence that the bus showed behind a gap
  #heardAt = 0; // the time of the last message or of the subscription
  #unsureMs = UNSURE_MS_MIN; // until the next listing
  #failures = 0; // of subscriptions, consecutive
  #subscribeAfter = 0;
  #connections = 0; // at the last listing
  #unasked: NodeJS.Timeout | undefined; // runs while nobody waits for an event

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
   * Finds the position. The first page returns the id of the store and checks the position. The
   * oldest event may be pruned between Stats and ListEvents; then this tries again.
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

  /** Yields encoded events. Ends with an error or when the caller leaves the loop. */
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

  // Returns the next matching event of the page.
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

  // Subscribes if that is due. Events before the subscription must be listed.
  #feedKeep(): void {
    const { eventsPath } = this.#host;
    if (this.#feed || eventsPath === undefined || now() < this.#subscribeAfter) return;
    this.#isBehind = true;
    this.#heardAt = now();
    this.#unsureMs = UNSURE_MS_MIN;
    this.#feed = new Feed(eventsPath);
  }

  // The bus is missing or unusable: goes on without it and tries again later.
  #feedDrop(): void {
    this.#feed?.close();
    this.#feed = undefined;
    this.#toldNewest = 0n;
    const ms = Math.min(SUBSCRIBE_MS_MIN * 2 ** Math.min(this.#failures++, 16), SUBSCRIBE_MS_MAX);
    this.#subscribeAfter = now() + ms * (1 - Math.random() / 4);
  }

  // Returns the next event of the bus; undefined if the watch must list or has no bus.
  async #feedTake(feed: Feed): Promise<Uint8Array | undefined> {
    while (this.#feed === feed && !this.#isBehind && !this.#signal.aborted) {
      const isUnsure = !feed.isLive;
      const left = this.#heardAt + this.#limits.silenceMs - now();
      const news = await feed.next(isUnsure ? Math.min(left, this.#unsureMs) : left, this.#signal);
      if (news instanceof Uint8Array) {
        this.#heardAt = now();
        // Not after the first message: a bus may send only one.
        if (!isUnsure) this.#failures = 0;
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

  // Returns the event of a message if it is the next one of the watch. Handles events of other
  // sessions too, because they move the position.
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
      return undefined; // already listed
    } else if (isKept && !this.#isNext(head, isMine)) {
      if (isMine) this.#fallBehind(head.sequence);
    } else {
      if (isKept) this.#after = head.sequence;
      if (isMine && head.type.startsWith(this.#request.typePrefix)) return event;
    }
    return undefined;
  }

  // Whether no event of the watch is missing before this one. An event of a session has the
  // sequence of the session's previous one. How a watch of a purged session ends, ListEvents
  // decides.
  #isNext(head: EventHead, isMine: boolean): boolean {
    const isOfSession = this.#topic !== "" && isMine;
    if (isOfSession && head.type === "session.purged") return false;
    if (head.sequence === this.#after + 1n) return true;
    const previous = head.previousSessionSequence;
    return isOfSession && previous > 0n && previous <= this.#after;
  }

  // There is a gap up to this sequence.
  #fallBehind(toldNewest: bigint): void {
    this.#isBehind = true;
    this.#toldNewest = toldNewest;
  }

  // Lists events after the position. Waits at the server only if there is no bus.
  async #pageFetch(isFirst: boolean): Promise<void> {
    let waitMs = this.#feed || isFirst ? 0 : WAIT_MS_MAX_AT_ONCE;
    if (waitMs > 0 && this.#host.eventsPath !== undefined) {
      waitMs = Math.max(0, Math.min(waitMs, Math.ceil(this.#subscribeAfter - now())));
    }
    const begun = now();
    const page = await this.#pageAsk(waitMs, isFirst);
    if (this.#connections !== this.#host.connections()) {
      this.#connections = this.#host.connections();
      this.#failures = 0; // the new server may have a bus
    }
    this.#instanceId ||= page.instanceId;
    this.#pageReplace(page);
    if (page.events.length === 0 && !page.more && waitMs > 0) {
      await this.#pauseIfHurried(waitMs, begun);
    }
  }

  // Reconnects if the server does not answer, and waits if it is overloaded. Before the watch has
  // begun only the caller's timeout applies.
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

  // Sets the next page. All events of the previous one have been returned.
  #pageReplace(page: Page): void {
    this.#page = page;
    this.#pageAt = 0;
    if (page.events.length > 0) this.#pauseMs = 0;
    else this.#after = page.nextAfter;
    if (page.more) return;
    this.#isBehind = false;
    // The bus announced events that the store does not have: it is the bus of another one.
    if (this.#feed && page.newest < this.#toldNewest) this.#feedDrop();
    this.#toldNewest = 0n;
  }

  // A server that stops, or has too many waiting calls, answers at once with an empty page. It must
  // not be called in a loop.
  async #pauseIfHurried(askedMs: number, begun: number): Promise<void> {
    if (now() - begun > askedMs / 2) return;
    this.#pauseMs = Math.min(Math.max(this.#pauseMs * 2, PAUSE_MS_MIN), PAUSE_MS_MAX);
    await pause(this.#pauseMs, this.#signal);
  }
}

/** Decodes a message of the bus. Throws WireError if it is malformed. */
export function messageRead(message: Uint8Array): BusMessage {
  const end = message.indexOf(0);
  if (end < 0) throw new WireError("no topic");
  const event = message.subarray(end + 1);
  return { topic: textRead(message.subarray(0, end)), head: headRead(event), event };
}

/** Decodes the fields of an Event that a watch needs. Throws WireError if it is malformed. */
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

// Decodes a ListEventsResponse, but not its events: the caller's generated code does that.
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
