"""The state machine of a watch: the bus for speed, ListEvents for certainty. Does no I/O.

ListEvents misses nothing. The sequences of a store have no gaps and never repeat, even across
restarts, and instance_id identifies the store. So the position of a watch consists of two fields.
The bus delivers at once but may lose messages: single ones, those during a reconnect, and those
sent before the server registered the subscriber. Therefore a watch subscribes first, then lists,
then takes from the bus the events that directly follow its position. It drops older events, and
after a gap it lists again. Until the first message of a subscription it is unknown whether the
server has registered the subscriber, so until then the watch lists from time to time. Without a
bus it calls ListEvents with wait_ms.

The driver of a watch calls `step`, does what it returns, and reports the result:

    Give       return the event to the caller
    Subscribe  connect to the bus             → subscribed or bus_lost
    Listen     wait for a message of the bus  → heard, silence or bus_lost
    Find       call Stats                     → answered or refused
    Fetch      call ListEvents                → answered or refused
    Pause      wait

It closes its bus when `has_bus` is false.
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

WAIT_S_MAX = 30.0  # of ListEvents at the server
REPLY_S_MAX = 2.0  # in addition, to connect and to answer
PAGE_EVENTS_MAX = 1000
PAUSE_S_MIN, PAUSE_S_MAX = 0.02, 1.0
START_ATTEMPTS_MAX = 5
FIRST_MESSAGE_S_MAX = 0.1  # then the watch begins without it
UNSURE_S_MIN, UNSURE_S_MAX = 0.005, 0.16  # between listings until the first message
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
    """Splits a message of the bus into topic and event; None if it is malformed."""
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
        self._patient_until = patient_until  # until then it waits for a server
        #: The position: the sequence of the last event that was returned or skipped, and its store.
        self.after_sequence = request.after_sequence if self._start == WATCH_START_AFTER else 0
        self.instance_id = request.instance_id
        #: The position is known: all later events will be returned.
        self.has_begun = False
        #: There is a subscription.
        self.has_bus = False
        self._is_found = self._start == WATCH_START_AFTER
        self._start_attempts = 0
        self._page: deque[Event] = deque()
        self._page_after = 0
        self._page_has_more = False
        self._is_behind = True
        self._bus_is_live = False
        self._told_newest = 0  # the newest sequence that the bus showed behind a gap
        self._heard_at = 0.0
        self._unsure_s = UNSURE_S_MIN
        self._bus_failures = 0
        self._subscribe_after = 0.0
        self._subscribed_at = 0.0
        self._backoff = Backoff()  # between failed listings
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
        # Before the watch has begun, only the caller's timeout applies.
        return Fetch(request, wait_s + REPLY_S_MAX if self.has_begun else inf)

    def answered(self, step: Union[Find, Fetch], body: bytes, now: float) -> None:
        """Stats or ListEvents succeeded. Raises Failure if the reply is malformed."""
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
        # The bus announced events that the store does not have: it is the bus of another one.
        if self.has_bus and page.newest_sequence < self._told_newest:
            self.bus_lost(now)
        self._told_newest = 0
        if not page.events and self._fetch_wait_s > 0:
            self._pause_if_hurried(now)

    def _pause_if_hurried(self, now: float) -> None:
        """A server that stops, or has too many waiting calls, answers at once with an empty page.
        It must not be called in a loop."""
        if now - self._fetch_begun > self._fetch_wait_s / 2:
            return
        self._pause_s = min(max(self._pause_s * 2, PAUSE_S_MIN), PAUSE_S_MAX)
        self._pause_until = now + self._pause_s

    def refused(self, failure: Failure, now: float) -> None:
        """Stats or ListEvents failed. Raises the failure if that ends the watch.

        A watch that has begun waits for a server that is not running or overloaded. Before that it
        fails, unless it was told to wait.
        """
        self._bus_failures = 0  # the next server may have a bus
        passes = failure.code in (UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED)
        if passes and (self.has_begun or now < self._patient_until):
            self._pause_until = now + self._backoff.next(is_absent=failure.is_absent)
            return
        # The oldest event may be pruned between Stats and ListEvents.
        is_pruned = failure.code == OUT_OF_RANGE and self._start != WATCH_START_AFTER
        self._start_attempts += 1
        if is_pruned and not self.has_begun and self._start_attempts < START_ATTEMPTS_MAX:
            self._is_found = False
            return
        raise failure

    def subscribed(self, now: float) -> None:
        self.has_bus = True
        self._is_behind = True  # events before the subscription must be listed
        self._bus_is_live = False
        self._subscribed_at = self._heard_at = now
        self._unsure_s = UNSURE_S_MIN

    def bus_lost(self, now: float) -> None:
        """The bus is missing or unusable: goes on without it and tries again later."""
        self.has_bus = False
        self._told_newest = 0
        wait = min(BUS_RETRY_S_MIN * 2 ** min(self._bus_failures, 16), BUS_RETRY_S_MAX)
        self._bus_failures += 1
        self._subscribe_after = now + wait

    def silence(self, now: float) -> None:
        """No message came until the time of Listen."""
        if now >= self._heard_at + SILENCE_S_MAX:
            self.bus_lost(now)
        elif not self._bus_is_live and self.has_begun:
            self._is_behind = True
            self._unsure_s = min(self._unsure_s * 2, UNSURE_S_MAX)

    def heard(self, message: bytes, now: float) -> Optional[Event]:
        """A message of the bus came. Returns its event if it is the next one of the watch."""
        self._heard_at = now
        if self._bus_is_live:
            self._bus_failures = (
                0  # not after one message: it may be the only one that it ever sends
            )
        is_first, self._bus_is_live = not self._bus_is_live, True
        if is_first and not self.has_begun:
            return None  # it was sent before the watch began
        read = message_read(message)
        if read is None:
            self.bus_lost(now)
            return None
        return self._take(*read)

    def _take(self, topic: str, event: Event) -> Optional[Event]:
        """Handles events of other sessions too, because they move the position."""
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
            return None  # already listed
        if is_kept and not self._is_next(event, is_mine=is_mine):
            if is_mine:
                self._fall_behind(event.sequence)
            return None
        if is_kept:
            self.after_sequence = event.sequence
        return event if is_mine and event.type.startswith(self._type_prefix) else None

    def _is_next(self, event: Event, *, is_mine: bool) -> bool:
        """Whether no event of the watch is missing before this one. An event of a session has the
        sequence of the session's previous one. How a watch of a purged session ends, ListEvents
        decides."""
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
    """Returns the call for Find or Fetch, with a timeout within the time that is left."""
    method = _STATS if isinstance(step, Find) else _LIST_EVENTS
    within = max(min(step.timeout, time_left), 0.001)
    timeout = None if within == inf else within
    return Exchange(settings, method, step.request.SerializeToString(), timeout, metadata)
