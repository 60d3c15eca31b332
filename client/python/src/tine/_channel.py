"""The channel of the blocking client, for grpc's generated stubs."""

from __future__ import annotations

import weakref
from typing import Any, Callable, Optional

import grpc

from tine import _grpc, _status
from tine._call import Exchange, Metadata, Method, Settings, body_of, method_of, reply_of
from tine._envelope import response_body
from tine._errors import error_of
from tine._future import CallFuture, Futures
from tine._link import Link
from tine._ready import Attempts
from tine._status import Failure
from tine._stream import WatchStream
from tine.v1.store_pb2 import WatchEventsRequest

Serializer = Optional[Callable[[Any], bytes]]
Deserializer = Optional[Callable[[bytes], Any]]


class Channel(grpc.Channel):
    """Created by `tine.connect`. Any number of threads may use it; they share one connection."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._link = Link(settings)
        self._futures = Futures(settings)
        self._streams: weakref.WeakSet[WatchStream] = weakref.WeakSet()
        self._is_closed = False

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

    def ready(self, timeout: Optional[float] = None) -> None:
        """Waits until the daemon answers. Starts it first if the channel has `start=True`.

        timeout  the maximum wait in seconds; None: no limit.

        Raises grpc.RpcError, which says why the daemon does not answer: after the timeout, or at
        once if waiting cannot help (tined cannot be started, the token is wrong, the channel is
        closed).
        """
        attempts = Attempts(self._settings, timeout)
        try:
            while True:
                try:
                    response_body(self._link.exchange(attempts.exchange()))
                    return
                except Failure as failure:
                    wait = attempts.wait_after(failure)
                self._link.pause(wait)
        except Failure as failure:
            raise error_of(failure) from None

    def subscribe(self, callback: Any, try_to_connect: Optional[bool] = False) -> None:
        """Reports the state once. The channel connects when a call needs it."""
        callback(grpc.ChannelConnectivity.SHUTDOWN if self._is_closed else _IDLE)

    def unsubscribe(self, callback: Any) -> None:
        pass

    def close(self) -> None:
        """Closes the channel. Pending and later calls end as CANCELLED."""
        self._is_closed = True
        self._link.close()
        self._futures.close()
        for stream in list(self._streams):
            stream.close()

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Used by the calls below.

    def call(self, exchange: Exchange) -> bytes:
        """Makes attempts until one succeeds or none is left. Raises Failure."""
        link = self._link
        while True:
            try:
                return response_body(link.exchange(exchange))
            except Failure as failure:
                wait = exchange.retry_in(failure)
                if wait is None:
                    raise
            if wait > 0:
                link.pause(wait)

    def watch(self, stream: WatchStream) -> None:
        self._streams.add(stream)
        if self._is_closed:
            stream.close()
        stream.begin()

    @property
    def settings(self) -> Settings:
        return self._settings

    @property
    def futures(self) -> Futures:
        return self._futures


_IDLE = grpc.ChannelConnectivity.IDLE


class UnaryUnary(_grpc.UnaryUnaryMultiCallable):
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
        timeout: Optional[float] = None,
        metadata: Optional[Metadata] = None,
        credentials: Optional[grpc.CallCredentials] = None,
        wait_for_ready: Optional[bool] = None,
        compression: Optional[grpc.Compression] = None,
    ) -> Any:
        exchange = Exchange(
            self._settings,
            self._method,
            body_of(self._serializer, request),
            timeout,
            metadata,
            wait_for_ready,
        )
        try:
            return reply_of(self._deserializer, self._channel.call(exchange))
        except Failure as failure:
            raise error_of(failure) from None

    def with_call(
        self,
        request: Any,
        timeout: Optional[float] = None,
        metadata: Optional[Metadata] = None,
        credentials: Optional[grpc.CallCredentials] = None,
        wait_for_ready: Optional[bool] = None,
        compression: Optional[grpc.Compression] = None,
    ) -> tuple[Any, grpc.Call]:
        reply = self(request, timeout, metadata, credentials, wait_for_ready, compression)
        return reply, _DoneCall()

    def future(
        self,
        request: Any,
        timeout: Optional[float] = None,
        metadata: Optional[Metadata] = None,
        credentials: Optional[grpc.CallCredentials] = None,
        wait_for_ready: Optional[bool] = None,
        compression: Optional[grpc.Compression] = None,
    ) -> CallFuture:
        exchange = Exchange(
            self._settings,
            self._method,
            body_of(self._serializer, request),
            timeout,
            metadata,
            wait_for_ready,
        )
        return self._channel.futures.begin(exchange, self._deserializer)


class UnaryStream(_grpc.UnaryStreamMultiCallable):
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
        timeout: Optional[float] = None,
        metadata: Optional[Metadata] = None,
        credentials: Optional[grpc.CallCredentials] = None,
        wait_for_ready: Optional[bool] = None,
        compression: Optional[grpc.Compression] = None,
    ) -> WatchStream:
        """Starts a watch. It will see all that is written after this returns."""
        if not self._method.is_watch:
            raise error_of(_status.no_such_stream(self._method.path))
        stream = WatchStream(
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
        raise error_of(_status.no_such_stream(self._path))

    future = with_call = __call__


class _DoneCall(grpc.Call):
    """The result object of a call that succeeded."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.OK

    def details(self) -> str:
        return ""

    def initial_metadata(self) -> tuple[tuple[str, str], ...]:
        return ()

    def trailing_metadata(self) -> tuple[tuple[str, str], ...]:
        return ()

    def is_active(self) -> bool:
        return False

    def time_remaining(self) -> Optional[float]:  # type: ignore[override]
        return None

    def cancel(self) -> bool:
        return False

    def add_callback(self, callback: Callable[[], None]) -> bool:
        return False
