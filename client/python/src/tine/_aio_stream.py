"""WatchEvents of the asyncio client. Each watch runs in a task of its own."""

from __future__ import annotations

import asyncio
import socket
import weakref
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from math import inf
from time import monotonic
from typing import Any, Callable, Optional, Union

import grpc
import grpc.aio

from tine import _grpc, _sp, _status
from tine._aio_link import AioLink
from tine._bus import BusReader
from tine._call import Metadata, Settings, deadline_of, pairs_of
from tine._errors import aio_error_of
from tine._sp import Malformed
from tine._status import Failure
from tine._watch import Fetch, Find, Give, Listen, Pause, Subscribe, Watch, ask, patient_until
from tine.v1.records_pb2 import Event
from tine.v1.store_pb2 import WatchEventsRequest, WatchEventsResponse

_READY_MAX = 1000  # events that are buffered for the caller; then the watch pauses


class Bus:
    """A subscription to the bus. PUB sends everything; a subscriber sends only its hello."""

    def __init__(self, sock: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self._reader = BusReader()

    @classmethod
    async def open(cls, path: str) -> Bus:
        """Raises OSError."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            await asyncio.get_running_loop().sock_connect(sock, path)
            sock.send(_sp.hello(_sp.SUB))
        except BaseException:
            sock.close()
            raise
        return cls(sock)

    async def next(self, until: float) -> Optional[bytes]:
        """Returns the next message, or None if there is none until then. Raises OSError or
        Malformed when the subscription has ended."""
        while True:
            message = self._reader.take()
            if message is not None:
                return message
            try:
                count = self._sock.recv_into(self._reader.room())
            except BlockingIOError:
                if monotonic() >= until:
                    return None
                await self._readable(until)
                continue
            if count == 0:
                raise ConnectionResetError("the bus hung up")
            self._reader.took(count)
            await asyncio.sleep(0)  # a busy bus must not block the loop

    async def _readable(self, until: float) -> None:
        """Waits until there are bytes. It reads none, so that a cancelled wait loses nothing."""
        ready: asyncio.Future[None] = self._loop.create_future()

        def wake() -> None:
            if not ready.done():
                ready.set_result(None)

        timer = self._loop.call_later(max(until - monotonic(), 0), wake)
        self._loop.add_reader(self._sock, wake)
        try:
            await ready
        finally:
            self._loop.remove_reader(self._sock)
            timer.cancel()

    def close(self) -> None:
        self._sock.close()


class _Driver:
    """The task of a watch. It holds no reference to the WatchCall, so that an abandoned call is
    garbage-collected, which ends the task."""

    def __init__(
        self,
        settings: Settings,
        request: WatchEventsRequest,
        metadata: Optional[Metadata],
        wait_for_ready: Optional[bool],
    ) -> None:
        self._settings = settings
        self._events_path = settings.address.events_path
        self._metadata = pairs_of(metadata)
        self._watch = Watch(
            request,
            bus_is_there=self._events_path is not None,
            patient_until=patient_until(settings, wait_for_ready),
        )
        # A waiting ListEvents would occupy one of the 64 slots of the shared connection.
        self._link = AioLink(settings)
        self._bus: Optional[Bus] = None
        #: None marks the end.
        self.ready: asyncio.Queue[Optional[Event]] = asyncio.Queue(_READY_MAX)
        self.begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> Failure:
        """Runs until the watch ends or is cancelled. Returns how it ended."""
        try:
            while True:
                event = await self._step()
                if self._watch.has_begun and not self.begun.done():
                    self.begun.set_result(None)
                if event is not None:
                    await self.ready.put(event)
        except Failure as failure:
            return failure
        except asyncio.CancelledError:
            return _status.cancelled()
        except Exception as error:  # of any kind: the caller must get it
            return Failure(_status.INTERNAL, "INTERNAL", repr(error))
        finally:
            self._bus_close()
            self._link.close()
            await self._link.closed()

    async def _step(self) -> Optional[Event]:
        """Does one step of the watch. Returns an event if the step gave one. Raises Failure."""
        watch, now = self._watch, monotonic()
        step = watch.step(now)
        if not watch.has_bus:
            self._bus_close()
        if isinstance(step, Give):
            return step.event
        if isinstance(step, Subscribe):
            await self._subscribe()
        elif isinstance(step, Listen):
            return await self._listen(step.until)
        elif isinstance(step, Pause):
            await asyncio.sleep(step.until - now)
        else:
            await self._ask(step, now)
        return None

    async def _subscribe(self) -> None:
        try:
            self._bus = await Bus.open(self._events_path or "")
        except OSError:
            self._watch.bus_lost(monotonic())
        else:
            self._watch.subscribed(monotonic())

    async def _listen(self, until: float) -> Optional[Event]:
        assert self._bus
        try:
            message = await self._bus.next(until)
        except (OSError, Malformed):
            self._watch.bus_lost(monotonic())
            return None
        if message is None:
            self._watch.silence(monotonic())
            return None
        return self._watch.heard(message, monotonic())

    async def _ask(self, step: Union[Find, Fetch], now: float) -> None:
        """Calls Stats or ListEvents."""
        try:
            body = await self._link.call(ask(step, self._settings, self._metadata, inf))
        except Failure as failure:
            self._watch.refused(failure, monotonic())
        else:
            self._watch.answered(step, body, monotonic())

    def _bus_close(self) -> None:
        bus, self._bus = self._bus, None
        if bus:
            bus.close()


class WatchCall(_grpc.AioUnaryStreamCall):
    """The events as an async iterator. It ends when it is garbage-collected."""

    def __init__(
        self,
        settings: Settings,
        request: WatchEventsRequest,
        deserializer: Optional[Callable[[bytes], Any]],
        timeout: Optional[float],
        metadata: Optional[Metadata],
        wait_for_ready: Optional[bool],
    ) -> None:
        self._deserializer = deserializer
        self._deadline = deadline_of(timeout)
        self._loop = asyncio.get_running_loop()
        driver = _Driver(settings, request, metadata, wait_for_ready)
        self._ready, self._begun = driver.ready, driver.begun
        self._ended: asyncio.Future[Failure] = self._loop.create_future()
        self._end: Optional[Failure] = None
        self._is_cut_off = False  # by the client: buffered events are dropped
        self._is_cancelled = False
        self._callbacks: list[Callable[[Any], None]] = []
        own = weakref.ref(self)
        self._timer: Optional[asyncio.TimerHandle] = None
        if timeout is not None and self._deadline != inf:
            self._timer = self._loop.call_later(max(timeout, 0), _expire, own)
        self.task = self._loop.create_task(driver.run())
        self.task.add_done_callback(partial(_tell, own))

    def __del__(self) -> None:
        # This may run in any thread. A closed loop has no tasks any more.
        if getattr(self, "_end", True) is None and not self._loop.is_closed():
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.task.cancel)

    # Ending

    def expire(self) -> None:
        self._cut_off(_status.late(was_sent=True))

    def run_out(self, task: asyncio.Task[Failure]) -> None:
        """Called when its task has ended."""
        if task.cancelled():
            self._cut_off(_status.cancelled())
        else:
            self._finish(task.result())

    def _cut_off(self, failure: Failure) -> bool:
        self._is_cut_off = self._is_cut_off or not self._end
        return self._finish(failure)

    def _finish(self, failure: Failure) -> bool:
        if self._end:
            return False
        self._end = failure
        self._ended.set_result(failure)
        if not self._begun.done():
            self._begun.set_result(None)
        if self._timer:
            self._timer.cancel()
        self.task.cancel()
        if not self._ready.full():
            self._ready.put_nowait(None)  # wakes a waiting caller
        for callback in self._callbacks:
            callback(self)
        self._callbacks.clear()
        return True

    def cancel(self) -> bool:
        self._is_cancelled = self._is_cancelled or not self._end
        return self._cut_off(_status.cancelled())

    def close(self) -> None:
        """Called when the channel is closed."""
        self._cut_off(_status.closed())

    # For callers

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        is_over = self._end and (self._is_cut_off or self._ready.empty())
        event = None if is_over else await self._ready.get()
        if event is None:
            if not self._ready.full():
                self._ready.put_nowait(None)  # for the next caller
            if self._is_cancelled:
                raise asyncio.CancelledError
            raise aio_error_of(self._end or _status.cancelled())
        response = WatchEventsResponse(event=event)
        if self._deserializer is None or self._deserializer == WatchEventsResponse.FromString:
            return response
        return self._deserializer(response.SerializeToString())

    async def read(self) -> Any:
        return await self.__anext__()

    async def wait_for_connection(self) -> None:
        """Waits until the watch has begun. It will see all that is written afterwards."""
        await asyncio.shield(self._begun)
        if self._end:
            raise aio_error_of(self._end)

    async def initial_metadata(self) -> grpc.aio.Metadata:
        await asyncio.shield(self._begun)
        return grpc.aio.Metadata()

    async def trailing_metadata(self) -> grpc.aio.Metadata:
        failure = await asyncio.shield(self._ended)
        return aio_error_of(failure).trailing()

    async def code(self) -> grpc.StatusCode:
        return (await asyncio.shield(self._ended)).status_code

    async def details(self) -> str:
        return (await asyncio.shield(self._ended)).message

    def done(self) -> bool:
        return self._end is not None

    def cancelled(self) -> bool:
        return self._is_cancelled

    def time_remaining(self) -> Optional[float]:
        return None if self._deadline == inf else max(self._deadline - monotonic(), 0.0)

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        if self._end:
            callback(self)
        else:
            self._callbacks.append(callback)


def _expire(call: weakref.ref[WatchCall]) -> None:
    there = call()
    if there:
        there.expire()


def _tell(call: weakref.ref[WatchCall], task: asyncio.Task[Failure]) -> None:
    there = call()
    if there:
        there.run_out(task)
