"""WatchEvents of the blocking client. The thread that iterates runs the watch."""

from __future__ import annotations

import os
import select
import socket
import threading
import weakref
from math import inf
from time import monotonic
from typing import Any, Callable, Optional, Union

import grpc

from tine import _sp, _status
from tine._bus import BusReader
from tine._call import Metadata, Settings, deadline_of, pairs_of
from tine._envelope import response_body
from tine._errors import REASON_KEY, error_of
from tine._grpc import CallIterator
from tine._link import Link, poll_ms
from tine._sp import Malformed
from tine._status import Failure
from tine._watch import (
    Fetch,
    Find,
    Give,
    Listen,
    Pause,
    Subscribe,
    Watch,
    ask,
    patient_until,
)
from tine.v1.records_pb2 import Event
from tine.v1.store_pb2 import WatchEventsRequest, WatchEventsResponse


class Bus:
    """A subscription to the bus. PUB sends everything; a subscriber sends only its hello."""

    def __init__(self, path: str) -> None:
        """Raises OSError."""
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._reader = BusReader()
        try:
            self._sock.settimeout(1.0)
            self._sock.connect(path)
            self._sock.sendall(_sp.hello(_sp.SUB))
            self._sock.setblocking(False)
        except BaseException:
            self._sock.close()
            raise

    def next(self, until: float) -> Optional[bytes]:
        """Returns the next message, or None if there is none until then. Raises OSError or
        Malformed when the subscription has ended."""
        while True:
            message = self._reader.take()
            if message is not None:
                return message
            wanted = select.poll()
            wanted.register(self._sock, select.POLLIN)
            if not wanted.poll(poll_ms(until)):
                if monotonic() >= until:
                    return None
                continue
            try:
                count = self._sock.recv_into(self._reader.room())
            except BlockingIOError:
                continue
            if count == 0:
                raise ConnectionResetError("the bus hung up")
            self._reader.took(count)

    def shut_down(self) -> None:
        """Called from any thread. A thread that waits for a message gets an error."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    def close(self) -> None:
        self._sock.close()


class WatchStream(CallIterator):
    """The events as an iterator. One thread at a time iterates; any thread may cancel."""

    def __init__(
        self,
        settings: Settings,
        request: WatchEventsRequest,
        deserializer: Optional[Callable[[bytes], Any]],
        timeout: Optional[float],
        metadata: Optional[Metadata],
        wait_for_ready: Optional[bool],
    ) -> None:
        self._settings = settings
        self._events_path = settings.address.events_path
        self._deserializer = deserializer
        self._deadline = deadline_of(timeout)
        self._metadata = pairs_of(metadata)
        self._watch = Watch(
            request,
            bus_is_there=self._events_path is not None,
            patient_until=patient_until(settings, wait_for_ready),
        )
        # A waiting ListEvents would occupy one of the 64 slots of the shared connection.
        self._link = Link(settings)
        self._bus: Optional[Bus] = None
        self._turn = threading.Lock()  # held while iterating
        self._lock = threading.Lock()  # protects how it ends
        self._end: Optional[Failure] = None
        self._callbacks: list[Callable[[], None]] = []
        self._given: Optional[Event] = None
        _streams.add(self)

    def begin(self) -> None:
        """Waits until the position is known. The watch will see all that is written afterwards. An
        error is raised by the first `next`."""
        with self._turn:
            try:
                while not self._watch.has_begun:
                    self._given = self._step()
            except Failure as failure:
                self._finish(failure)
                self._bus_close()

    def __iter__(self) -> WatchStream:
        return self

    def __next__(self) -> Any:
        with self._turn:
            try:
                while self._given is None:
                    self._given = self._step()
            except Failure as failure:
                self._finish(failure)
                self._bus_close()
                raise error_of(self._end or failure) from None
            except BaseException:  # a signal handler raised: it is unknown how much was read
                self._bus_close()
                raise
            event, self._given = self._given, None
        response = WatchEventsResponse(event=event)
        if self._deserializer is None or self._deserializer == WatchEventsResponse.FromString:
            return response
        return self._deserializer(response.SerializeToString())

    def _step(self) -> Optional[Event]:
        """Does one step of the watch. Returns an event if the step gave one. Raises Failure."""
        if self._end:
            raise self._end
        watch, now = self._watch, monotonic()
        if now >= self._deadline:
            raise _status.late(was_sent=True)
        step = watch.step(now)
        if self._bus and not watch.has_bus:
            self._bus_close()
        if isinstance(step, Give):
            return step.event
        if isinstance(step, Subscribe):
            self._subscribe()
        elif isinstance(step, Listen):
            return self._listen(step.until)
        elif isinstance(step, Pause):
            self._link.pause(min(step.until, self._deadline) - now)
        else:
            self._ask(step, now)
        return None

    def _subscribe(self) -> None:
        try:
            bus = Bus(self._events_path or "")
        except OSError:
            self._watch.bus_lost(monotonic())
            return
        with self._lock:
            if self._end:
                bus.close()
                raise self._end
            self._bus = bus
        self._watch.subscribed(monotonic())

    def _listen(self, until: float) -> Optional[Event]:
        assert self._bus
        try:
            message = self._bus.next(min(until, self._deadline))
        except (OSError, Malformed):
            self._watch.bus_lost(monotonic())
            return None
        if message is None:
            self._watch.silence(monotonic())
            return None
        return self._watch.heard(message, monotonic())

    def _ask(self, step: Union[Find, Fetch], now: float) -> None:
        """Calls Stats or ListEvents."""
        try:
            exchange = ask(step, self._settings, self._metadata, self._deadline - now)
            body = response_body(self._link.exchange(exchange))
        except Failure as failure:
            if self._end:
                raise self._end from None
            if monotonic() >= self._deadline:
                raise _status.late(was_sent=True) from None
            self._watch.refused(failure, monotonic())
            return
        self._watch.answered(step, body, monotonic())

    def _finish(self, failure: Failure) -> bool:
        with self._lock:
            if self._end:
                return False
            self._end = failure
            if self._bus:
                self._bus.shut_down()
            callbacks, self._callbacks = self._callbacks, []
        self._link.close()
        if self._turn.acquire(blocking=False):  # else the iterating thread closes it
            try:
                self._bus_close()
            finally:
                self._turn.release()
        for callback in callbacks:
            callback()
        return True

    def _bus_close(self) -> None:
        with self._lock:
            bus, self._bus = self._bus, None
        if bus:
            bus.close()
            if self._watch.has_bus:
                self._watch.bus_lost(monotonic())

    def after_fork(self) -> None:
        """In the child process: opens new connections and goes on from the same position."""
        self._turn, self._lock = threading.Lock(), threading.Lock()
        self._bus_close()

    def cancel(self) -> bool:
        return self._finish(_status.cancelled())

    def close(self) -> None:
        """Called when the channel is closed."""
        self._finish(_status.closed())

    def is_active(self) -> bool:
        return self._end is None

    def time_remaining(self) -> Optional[float]:  # type: ignore[override]
        return None if self._deadline == inf else max(self._deadline - monotonic(), 0.0)

    def add_callback(self, callback: Callable[[], None]) -> bool:
        with self._lock:
            if self._end:
                return False
            self._callbacks.append(callback)
            return True

    def initial_metadata(self) -> tuple[tuple[str, str], ...]:
        return ()

    def trailing_metadata(self) -> tuple[tuple[str, str], ...]:
        return ((REASON_KEY, self._end.reason),) if self._end and self._end.reason else ()

    def code(self) -> Optional[grpc.StatusCode]:  # type: ignore[override]
        """None while the watch runs."""
        return self._end.status_code if self._end else None

    def details(self) -> Optional[str]:  # type: ignore[override]
        return self._end.message if self._end else None

    def __del__(self) -> None:
        if getattr(self, "_end", True) is None:
            self.cancel()


_streams: weakref.WeakSet[WatchStream] = weakref.WeakSet()


def _after_fork() -> None:
    for stream in list(_streams):
        stream.after_fork()


os.register_at_fork(after_in_child=_after_fork)
