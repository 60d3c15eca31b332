// A watch whose beginning a test can await.

import assert from "node:assert/strict";
import { closeOnBreak } from "@tine-store/client";
import type { Event, WatchEventsResponse } from "@tine-store/client/v1";
import type { Tine } from "./daemon.js";

export class Watching {
  readonly #events: AsyncIterableIterator<WatchEventsResponse>;
  #first: Promise<IteratorResult<WatchEventsResponse>> | undefined;

  constructor(events: AsyncIterableIterator<WatchEventsResponse>) {
    this.#events = events;
    this.#first = events.next();
  }

  /** Returns the next events. */
  async take(count: number): Promise<Event[]> {
    const taken: Event[] = [];
    while (taken.length < count) {
      const next = this.#first ?? this.#events.next();
      this.#first = undefined;
      const { value } = await next;
      assert.ok(value?.event);
      taken.push(value.event);
    }
    return taken;
  }

  end(): void {
    this.#first?.catch(() => {});
    void this.#events.return?.();
  }
}

/** Starts a watch. It sees all that happens after this has resolved. */
export function watching(tine: Tine, request: Parameters<Tine["watchEvents"]>[0]) {
  return new Promise<Watching>((done) => {
    const watch: Watching = new Watching(
      closeOnBreak((signal) => tine.watchEvents(request, { signal, onHeader: () => done(watch) })),
    );
  });
}
