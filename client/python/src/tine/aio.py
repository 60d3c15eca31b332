"""The asyncio client: `tine.aio.connect` returns a channel for grpc's generated stubs.

async with tine.aio.connect() as channel:
    store = StoreServiceStub(channel)
    reply = await store.GetSession(GetSessionRequest(session_id=id), timeout=1.0)
    async for response in store.WatchEvents(WatchEventsRequest()):
        print(response.event.type)
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Generator
from math import inf
from time import monotonic
from typing import Any, Callable, Optional

import grpc
import grpc.aio

from tine import _grpc, _status
from tine._aio_link import AioLink, Job, Outcome
from tine._aio_stream import WatchCall
from tine._call import Exchange, Metadata, Method, Settings, body_of, method_of, reply_of
from tine._errors import TineAioError, aio_error_of
from tine._pages import aio_pages as pages
from tine._ready import Attempts
from tine._settings import settings_of
from tine._status import Failure
from tine.v1.store_pb2 import WatchEventsRequest

__all__ = ["Channel", "TineAioError", "connect", "pages"]

Serializer = Optional[Callable[[Any], bytes]]
Deserializer = Optional[Callable[[bytes], Any]]


def connect(
    url: Optional[str] = None,
    *,
    token: Optional[str] = None,
    retry: float = 0.0,
    start: bool = False,
) -> Channel:
    """Returns a channel to the daemon at `url`. The parameters are those of `tine.connect`.

    The channel connects at the first call, on the event loop that is running then.
    """
    return Channel(settings_of(url, token, retry, start=start))


class Channel(grpc.aio.Channel):
    """Created by `tine.aio.connect`. It is used by one event loop at a time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._is_closed = False
        self._link: Optional[AioLink] = None
        self._streams: weakref.WeakSet[WatchCall] = weakref.WeakSet()
        self._tasks: set[asyncio.Task[Failure]] = set()  # of the watches, including abandoned ones
        _channels.add(self)

    def unary_unary(
        self,
        method: str,
        request_serializer: Serializer = None,
        response_deserializer: Deserializer = None,
        _registered_method: Optional[bool] = False,
    ) -> UnaryUnary:
        return UnaryUnary(self, method_of(method), request_serializer, response_deserializer)

    def unary_stream(
        self,
        method: str,
        request_serializer: Serializer = None,
        response_deserializer: Deserializer = None,
        _registered_method: Optional[bool] = False,
    ) -> UnaryStream:
        return UnaryStream(self, method_of(method), request_serializer, response_deserializer)

    def stream_unary(self, method: str, *arguments: Any, **options: Any) -> Any:
        """The contract has no such calls. A stub of another service gets UNIMPLEMENTED."""
        return _NoSuchStream(method)

    def stream_stream(self, method: str, *arguments: Any, **options: Any) -> Any:
        return _NoSuchStream(method)

    async def close(self, grace: Optional[float] = None) -> None:
        """Closes the channel. Pending and later calls end as CANCELLED; `grace` is ignored."""
        self._is_closed = True
        streams, link = list(self._streams), self._link
        for stream in streams:
            stream.close()
        if link and link.loop is asyncio.get_running_loop():
            link.close()
            await link.closed()
        own = {task for task in self._tasks if task.get_loop() is asyncio.get_running_loop()}
        if own:
            await asyncio.wait(own)

    async def __aenter__(self) -> Channel:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        """IDLE until a call connects: this does not connect by itself."""
        if self._is_closed:
            return grpc.ChannelConnectivity.SHUTDOWN
        if self._link and self._link.is_connected:
            return grpc.ChannelConnectivity.READY
        return grpc.ChannelConnectivity.IDLE

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        raise NotImplementedError("a tine channel does not report changes of its state")

    async def ready(self, timeout: Optional[float] = None) -> None:
        """Waits until the daemon answers, as `tine.Channel.ready` does."""
        attempts = Attempts(self._settings, timeout)
        try:
            while True:
                try:
                    await self.link().call(attempts.exchange())
                    return
                except Failure as failure:
                    wait = attempts.wait_after(failure)
                await asyncio.sleep(wait)
        except Failure as failure:
            raise aio_error_of(failure) from None

    async def channel_ready(self) -> None:
        """The same as `ready()`; grpc.aio has this name."""
        await self.ready()

    # Used by the calls below.

    @property
    def settings(self) -> Settings:
        return self._settings

    def link(self) -> AioLink:
        loop = asyncio.get_running_loop()
        if self._link is None or self._link.loop is not loop:
            if self._link and not self._link.loop.is_closed():
                self._link.loop.call_soon_threadsafe(self._link.close)
            self._link = AioLink(self._settings)
            if self._is_closed:
                self._link.close()
        return self._link

    def watch(self, stream: WatchCall) -> None:
        if self._is_closed:
            stream.close()
        self._streams.add(stream)
        self._tasks.add(stream.task)
        stream.task.add_done_callback(self._tasks.discard)

    def after_fork(self) -> None:
        """In the child process: the next call opens a connection of its own."""
        if self._link:
            self._link.after_fork()
            self._link = None
        self._streams = weakref.WeakSet()
        self._tasks = set()


_channels: weakref.WeakSet[Channel] = weakref.WeakSet()


def _after_fork() -> None:
    for channel in list(_channels):
        channel.after_fork()


os.register_at_fork(after_in_child=_after_fork)


class UnaryUnary(_grpc.AioUnaryUnaryMultiCallable):
    def __init__(
        self,
        channel: Channel,
        method: Method,
        serializer: Serializer,
        deserializer: Deserializer,
    ) -> None:
        self._channel = channel
        self._settings = channel.settings
        self._method = method
        self._serializer = serializer
        self._deserializer = deserializer

    def __call__(
        self,
        request: Any,
        *,
        timeout: Optional[float] = None,
        metadata: Optional[Metadata] = None,
        credentials: Optional[grpc.CallCredentials] = None,
        wait_for_ready: Optional[bool] = None,
        compression: Optional[grpc.Compression] = None,
    ) -> UnaryUnaryCall:
        exchange = Exchange(
            self._settings,
            self._method,
            body_of(self._serializer, request),
            timeout,
            metadata,
            wait_for_ready,
        )
        return UnaryUnaryCall(self._channel.link(), exchange, self._deserializer)


class UnaryUnaryCall(_grpc.AioUnaryUnaryCall):
    """A call, which runs whether it is awaited or not. Await it for the reply."""

    def __init__(self, link: AioLink, exchange: Exchange, deserializer: Deserializer) -> None:
        self._link = link
        self._deadline = exchange.deadline
        self._deserializer = deserializer
        self._ended: asyncio.Future[None] = link.loop.create_future()
        self._outcome: Optional[Outcome] = None
        self._is_cancelled = False
        self._job = Job(exchange, self._finished)
        link.submit(self._job)

    def _finished(self, outcome: Outcome) -> None:
        self._outcome = outcome
        if not self._ended.done():
            self._ended.set_result(None)

    def __await__(self) -> Generator[Any, None, Any]:
        if self._outcome is None:
            try:
                yield from self._ended
            except asyncio.CancelledError:
                self.cancel()
                raise
        if self._is_cancelled:
            raise asyncio.CancelledError
        outcome = self._outcome
        if isinstance(outcome, Failure):
            raise aio_error_of(outcome)
        assert outcome is not None
        try:
            return reply_of(self._deserializer, outcome)
        except Failure as failure:
            raise aio_error_of(failure) from None

    def cancel(self) -> bool:
        if self._outcome is not None:
            return False
        self._is_cancelled = True
        self._link.cancel(self._job, _status.cancelled())
        return True

    def cancelled(self) -> bool:
        return self._is_cancelled

    def done(self) -> bool:
        return self._outcome is not None

    def time_remaining(self) -> Optional[float]:
        return None if self._deadline == inf else max(self._deadline - monotonic(), 0.0)

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self._ended.add_done_callback(lambda _: callback(self))

    async def wait_for_connection(self) -> None:
        """Returns at once. A call that cannot be sent fails when it is awaited."""

    async def initial_metadata(self) -> grpc.aio.Metadata:
        await self._end()
        return grpc.aio.Metadata()

    async def trailing_metadata(self) -> grpc.aio.Metadata:
        outcome = await self._end()
        if isinstance(outcome, Failure):
            return aio_error_of(outcome).trailing()
        return grpc.aio.Metadata()

    async def code(self) -> grpc.StatusCode:
        outcome = await self._end()
        return outcome.status_code if isinstance(outcome, Failure) else grpc.StatusCode.OK

    async def details(self) -> str:
        outcome = await self._end()
        return outcome.message if isinstance(outcome, Failure) else ""

    async def _end(self) -> Outcome:
        if self._outcome is None:
            await asyncio.shield(self._ended)
        assert self._outcome is not None
        return self._outcome


class UnaryStream(_grpc.AioUnaryStreamMultiCallable):
    def __init__(
        self,
        channel: Channel,
        method: Method,
        serializer: Serializer,
        deserializer: Deserializer,
    ) -> None:
        self._channel = channel
        self._method = method
        self._serializer = serializer
        self._deserializer = deserializer

    def __call__(
        self,
        request: Any,
        *,
        timeout: Optional[float] = None,
        metadata: Optional[Metadata] = None,
        credentials: Optional[grpc.CallCredentials] = None,
        wait_for_ready: Optional[bool] = None,
        compression: Optional[grpc.Compression] = None,
    ) -> WatchCall:
        """Starts a watch in the background; `await call.wait_for_connection()` waits for that."""
        if not self._method.is_watch:
            raise aio_error_of(_status.no_such_stream(self._method.path))
        stream = WatchCall(
            self._channel.settings,
            WatchEventsRequest.FromString(body_of(self._serializer, request)),
            self._deserializer,
            timeout,
            metadata,
            wait_for_ready,
        )
        self._channel.watch(stream)
        return stream


class _NoSuchStream:
    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        raise aio_error_of(_status.no_such_stream(self._path))
