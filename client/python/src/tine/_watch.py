"""Watching: the bus for speed, ListEvents for certainty. No input or output.

ListEvents misses nothing: sequences of one store have no gaps and never repeat, also over
restarts, and instance_id tells when it is another store. So where a watch stands is two fields.
The bus tells at once but may lose: a message, a connection, or what was sent before the server
knew of the subscriber. Hence the order: subscribe, then list, then take from the bus what follows
the position; drop what is not past it; and where it does not follow, list again. Until the first
message of a connection nobody knows whether the server counts the subscriber in, so until then
the watch lists now and again. Without a bus it lists, and waits at the server for news.

Whoever drives a watch asks `step` what to do, does it, and tells how it went:

    Give       hand out the event
    Subscribe  connect to the bus                   → subscribed, or bus_lost
    Listen     wait for a message of the bus        → heard, silence, or bus_lost
    Find       call Stats                           → answered, or refused
    Fetch      call ListEvents                      → answered, or refused
    Pause      wait

and closes its bus when `has_bus` is false.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import inf
from typing import Optional, Union

from google.protobuf.message import DecodeError

from tine._backoff import Backoff
from tine._call import Exchange, Metadata, Settings, deadline_of, method_of
from tine._envelope import has_group
from tine._status import (
    DEADLINE_EXCEEDED,
    OUT_OF_RANGE,
    RESOURCE_EXHAUSTED,
    UNAVAILABLE,
    Failure,
    undecodable,
)
from tine.v1.records_pb2 import Event
from tine.v1.store_pb2 import (
    WATCH_START_AFTER,
    WATCH_START_OLDEST,
    ListEventsRequest,
    ListEventsResponse,
    StatsRequest,
    StatsResponse,
    WatchEventsRequest,
)

WAIT_S_MAX = 30.0  # at the server, for news
REPLY_S_MAX = 2.0  # beyond the wait, to connect and to answer
PAGE_EVENTS_MAX = 1000
PAUSE_S_MIN, PAUSE_S_MAX = 0.02, 1.0
START_ATTEMPTS_MAX = 5
FIRST_MESSAGE_S_MAX = 0.1  # then a watch begins without it
UNSURE_S_MIN, UNSURE_S_MAX = 0.005, 0.16  # between the listings until the first message
BUS_RETRY_S_MIN, BUS_RETRY_S_MAX = 0.05, 30.0
SILENCE_S_MAX = 15.0  # three heartbeats
_ALL = 2**64 - 1

_LIST_EVENTS = method_of("/tine.v1.StoreService/ListEvents")
_STATS = method_of("/tine.v1.StoreService/Stats")


@dataclass(frozen=True)
class Give:
    event: Event


@dataclass(frozen=True)
class Subscribe:
    pass


@dataclass(frozen=True)
class Listen:
    until: float


@dataclass(frozen=True)
class Find:
    request: StatsRequest
    timeout: float


@dataclass(frozen=True)
class Fetch:
    request: ListEventsRequest
    timeout: float


@dataclass(frozen=True)
class Pause:
    until: float


Step = Union[Give, Subscribe, Listen, Find, Fetch, Pause]


def message_read(message: bytes) -> Optional[tuple[str, Event]]:
    """The topic and the event of a message of the bus; None when it is none."""
    topic, zero, data = message.partition(b"\0")
    if not zero:
        return None
    try:
        event = Event.FromString(data)
        return None if has_group(event) else (topic.decode(), event)
    except (DecodeError, UnicodeDecodeError):
        return None


class Watch:
    def __init__(
        self, request: WatchEventsRequest, *, bus_is_there: bool, patient_until: float = 0.0
    ) -> None:
        self._session_id = request.session_id
        self._type_prefix = request.type_prefix
        self._topic = f"session/{request.session_id}/" if request.session_id else ""
        self._start = request.start
        self._bus_is_there = bus_is_there
        self._patient_until = patient_until  # a server that is not there is waited for
        #: Where the watch stands: of the last event given out or left out, and of its store.
        self.after_sequence = request.after_sequence if self._start == WATCH_START_AFTER else 0
        self.instance_id = request.instance_id
        #: The position is known: what happens from now on will be given out.
        self.has_begun = False
        #: It is subscribed.
        self.has_bus = False
        self._is_found = self._start == WATCH_START_AFTER
        self._start_attempts = 0
        self._page: deque[Event] = deque()
        self._page_after = 0
        self._page_has_more = False
        self._is_behind = True
        self._bus_is_live = False
        self._told_newest = 0  # by the bus, when it told of a gap
        self._heard_at = 0.0
        self._unsure_s = UNSURE_S_MIN
        self._bus_failures = 0
        self._subscribe_after = 0.0
        self._subscribed_at = 0.0
        self._backoff = Backoff()  # of listings
        self._pause_s = 0.0
        self._pause_until = 0.0
        self._fetch_wait_s = 0.0
        self._fetch_begun = 0.0

    def step(self, now: float) -> Step:
        event = self._page_take()
        if event is not None:
            return Give(event)
        if not self.has_bus and self._bus_is_there and now >= self._subscribe_after:
            return Subscribe()
        if not self.has_begun and self.has_bus and not self._bus_is_live:
            begin_at = self._subscribed_at + FIRST_MESSAGE_S_MAX
            if now < begin_at:
                return Listen(begin_at)
        if now < self._pause_until:
            return Pause(self._pause_until)
        if not self._is_found:
            return Find(StatsRequest(), inf)
        if self.has_begun and self.has_bus and not self._is_behind:
            return Listen(self._listen_until(now))
        return self._fetch(now)

    def _listen_until(self, now: float) -> float:
        until = self._heard_at + SILENCE_S_MAX
        return until if self._bus_is_live else min(until, now + self._unsure_s)

    def _fetch(self, now: float) -> Fetch:
        wait_s = WAIT_S_MAX if self.has_begun and not self.has_bus else 0.0
        if wait_s > 0 and self._bus_is_there:
            wait_s = min(wait_s, max(self._subscribe_after - now, 0.0))
        self._fetch_wait_s = wait_s
        self._fetch_begun = now
        request = ListEventsRequest(
            after_sequence=self.after_sequence,
            session_id=self._session_id,
            instance_id=self.instance_id,
            limit=PAGE_EVENTS_MAX,
            wait_ms=int(wait_s * 1000),
        )
        # Until it has begun it is the caller who says how long to wait.
        return Fetch(request, wait_s + REPLY_S_MAX if self.has_begun else inf)

    def answered(self, step: Union[Find, Fetch], body: bytes, now: float) -> None:
        """Stats or ListEvents succeeded. Raises Failure when its reply is none."""
        try:
            if isinstance(step, Find):
                self.found(StatsResponse.FromString(body))
            else:
                self.listed(ListEventsResponse.FromString(body), now)
        except DecodeError:
            raise undecodable() from None

    def found(self, stats: StatsResponse) -> None:
        self.after_sequence = stats.newest_event_sequence
        if self._start == WATCH_START_OLDEST and stats.oldest_event_sequence > 0:
            self.after_sequence = stats.oldest_event_sequence - 1
        self._is_found = True

    def listed(self, page: ListEventsResponse, now: float) -> None:
        if not self.instance_id:
            self.instance_id = page.instance_id
        self.has_begun = True
        self._backoff.reset()
        self._page.extend(page.events)
        self._page_after = page.next_after_sequence
        if page.events:
            self._pause_s = 0.0
        else:
            self.after_sequence = page.next_after_sequence
        if page.more:
            return
        self._is_behind = False
        # The bus told of events that the store does not have: it is another's.
        if self.has_bus and page.newest_sequence < self._told_newest:
            self.bus_lost(now)
        self._told_newest = 0
        if not page.events and self._fetch_wait_s > 0:
            self._pause_if_hurried(now)

    def _pause_if_hurried(self, now: float) -> None:
        """A server with too many calls that wait answers at once, with nothing: it is not to be
        asked in a loop. So does one that is about to stop."""
        if now - self._fetch_begun > self._fetch_wait_s / 2:
            return
        self._pause_s = min(max(self._pause_s * 2, PAUSE_S_MIN), PAUSE_S_MAX)
        self._pause_until = now + self._pause_s

    def refused(self, failure: Failure, now: float) -> None:
        """Stats or ListEvents failed. Raises the failure when that ends the watch.

        A watch that has begun outlives its server, and waits where that has too much to do; one
        that has not says what is wrong, unless it was told to wait.
        """
        self._bus_failures = 0  # whoever comes next may have a bus
        passes = failure.code in (UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED)
        if passes and (self.has_begun or now < self._patient_until):
            self._pause_until = now + self._backoff.next(is_absent=failure.is_absent)
            return
        # While the oldest event is being pruned it may be gone by the time it is asked for.
        is_pruned = failure.code == OUT_OF_RANGE and self._start != WATCH_START_AFTER
        self._start_attempts += 1
        if is_pruned and not self.has_begun and self._start_attempts < START_ATTEMPTS_MAX:
            self._is_found = False
            return
        raise failure

    def subscribed(self, now: float) -> None:
        self.has_bus = True
        self._is_behind = True  # everything must be listed once
        self._bus_is_live = False
        self._subscribed_at = self._heard_at = now
        self._unsure_s = UNSURE_S_MIN

    def bus_lost(self, now: float) -> None:
        """There is none, or it is of no use: goes on without, and tries again later."""
        self.has_bus = False
        self._told_newest = 0
        wait = min(BUS_RETRY_S_MIN * 2 ** min(self._bus_failures, 16), BUS_RETRY_S_MAX)
        self._bus_failures += 1
        self._subscribe_after = now + wait

    def silence(self, now: float) -> None:
        """Nothing came until the time that Listen said."""
        if now >= self._heard_at + SILENCE_S_MAX:
            self.bus_lost(now)
        elif not self._bus_is_live and self.has_begun:
            self._is_behind = True
            self._unsure_s = min(self._unsure_s * 2, UNSURE_S_MAX)

    def heard(self, message: bytes, now: float) -> Optional[Event]:
        """A message of the bus: returns the event if it is one that the watch wants now."""
        self._heard_at = now
        if self._bus_is_live:
            self._bus_failures = 0  # one message may be all that it ever sends
        is_first, self._bus_is_live = not self._bus_is_live, True
        if is_first and not self.has_begun:
            return None  # it was sent before the watch began
        read = message_read(message)
        if read is None:
            self.bus_lost(now)
            return None
        return self._take(*read)

    def _take(self, topic: str, event: Event) -> Optional[Event]:
        """All messages are looked at: those of other sessions move the position too."""
        if event.instance_id != self.instance_id:
            self._fall_behind(_ALL)
            return None
        if topic == "heartbeat":
            if event.sequence > self.after_sequence:
                self._fall_behind(event.sequence)
            return None
        is_mine = topic.startswith(self._topic)
        is_kept = event.sequence > 0
        if is_kept and event.sequence <= self.after_sequence:
            return None  # listed already
        if is_kept and not self._is_next(event, is_mine=is_mine):
            if is_mine:
                self._fall_behind(event.sequence)
            return None
        if is_kept:
            self.after_sequence = event.sequence
        return event if is_mine and event.type.startswith(self._type_prefix) else None

    def _is_next(self, event: Event, *, is_mine: bool) -> bool:
        """One of a session says which one was the session's last: between that and the position
        there is none of it. What a purged session's watch gets, ListEvents says."""
        is_of_session = bool(self._topic) and is_mine
        if is_of_session and event.type == "session.purged":
            return False
        if event.sequence == self.after_sequence + 1:
            return True
        return is_of_session and 0 < event.previous_session_sequence <= self.after_sequence

    def _fall_behind(self, told_newest: int) -> None:
        self._is_behind = True
        self._told_newest = told_newest

    def _page_take(self) -> Optional[Event]:
        while self._page:
            event = self._page.popleft()
            self.after_sequence = event.sequence if self._page else self._page_after
            if event.type.startswith(self._type_prefix):
                return event
        return None


def patient_until(settings: Settings, wait_for_ready: Optional[bool]) -> float:
    if wait_for_ready:
        return inf
    return deadline_of(settings.retry_s) if settings.retry_s > 0 else 0.0


def ask(
    step: Union[Find, Fetch], settings: Settings, metadata: Metadata, time_left: float
) -> Exchange:
    """The call that Find or Fetch wants, within what is left of the watch's own time."""
    method = _STATS if isinstance(step, Find) else _LIST_EVENTS
    within = max(min(step.timeout, time_left), 0.001)
    timeout = None if within == inf else within
    return Exchange(settings, method, step.request.SerializeToString(), timeout, metadata)
