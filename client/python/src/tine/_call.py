"""One call: its request, its deadline and its retries. Does no I/O."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf
from time import monotonic
from typing import Any, Optional, Union, cast

import grpc.aio
from google.protobuf.descriptor_pb2 import MethodOptions

from tine import _envelope, _status
from tine._backoff import Backoff
from tine._envelope import Text
from tine._place import Address
from tine._status import UNAVAILABLE, Failure
from tine.v1 import store_pb2

_TIMEOUT_MS_MAX = 2**53
_TIMEOUT_S_MAX = min(threading.TIMEOUT_MAX, 100 * 365 * 86400.0)  # a longer timeout is none

#: Pairs of key and value, as in gRPC, or a grpc.aio.Metadata.
Metadata = Union[grpc.aio.Metadata, Sequence[tuple[str, Union[str, bytes]]]]


@dataclass(frozen=True)
class Settings:
    """The parameters of `connect`."""

    address: Address
    token: bytes  # the encoded field of the envelope
    retry_s: float
    starts_tined: bool


@dataclass(frozen=True)
class Method:
    """What the contract says about a method."""

    path: str
    field: bytes  # the encoded field of the envelope
    is_read: bool
    is_broadcast: bool
    is_watch: bool


@lru_cache(maxsize=1024)
def method_of(path: str) -> Method:
    service = store_pb2.DESCRIPTOR.services_by_name["StoreService"]
    prefix = f"/{service.full_name}/"
    found = service.methods_by_name.get(path[len(prefix) :]) if path.startswith(prefix) else None
    is_read = (
        found is not None and found.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS
    )
    return Method(
        path=path,
        field=_envelope.method_field(path),
        is_read=is_read,
        is_broadcast=found is not None and found.name == "BroadcastEvent",
        is_watch=found is not None and found.name == "WatchEvents",
    )


def pairs_of(metadata: Optional[Metadata]) -> list[tuple[str, Text]]:
    return [] if metadata is None else cast("list[tuple[str, Text]]", list(metadata))


def operation_id_make() -> str:
    return secrets.token_hex(16)


def deadline_of(timeout: Optional[float]) -> float:
    if timeout is None or not timeout < _TIMEOUT_S_MAX:
        return inf
    return monotonic() + timeout


class Exchange:
    """One call with all its attempts, which share one operation_id."""

    __slots__ = (
        "_backoff",
        "_body",
        "_is_repeatable",
        "_method",
        "_operation_id",
        "_retries",
        "_stale",
        "_sync",
        "_token",
        "_traceparent",
        "connect_until",
        "deadline",
    )

    def __init__(
        self,
        settings: Settings,
        method: Method,
        body: bytes,
        timeout: Optional[float] = None,
        metadata: Optional[Metadata] = None,
        wait_for_ready: Optional[bool] = None,
    ) -> None:
        self._method = method
        self._body = body
        self._token = settings.token
        self._traceparent: Text = b""
        self._sync = False
        operation_id: Optional[Text] = None
        if metadata is not None:
            for key, value in pairs_of(metadata):
                if key == "tine-operation-id":
                    operation_id = value
                elif key == "traceparent":
                    self._traceparent = value
                elif key == "tine-token":
                    self._token = _envelope.token_field(value)
                elif key == "tine-sync":
                    self._sync = value in ("1", b"1")
        if method.is_read:
            operation_id = b""
        elif operation_id is None:
            operation_id = operation_id_make()
        self._operation_id: Text = operation_id
        # The server does not remember the operation_id of a broadcast, because it stores nothing.
        self._is_repeatable = method.is_read or (bool(operation_id) and not method.is_broadcast)
        self._backoff: Optional[Backoff] = None  # made by the first failure
        self._stale = 0
        self.deadline = deadline_of(timeout)
        self._retries = settings.retry_s > 0
        #: Until then the call waits for a server that is not running; 0: it does not wait.
        self.connect_until = 0.0
        if wait_for_ready:
            self.connect_until = self.deadline
        elif settings.retry_s > 0:
            self.connect_until = min(self.deadline, deadline_of(settings.retry_s))

    def head(self) -> bytes:
        """Returns the envelope of the next attempt, without the body. Raises Failure."""
        timeout_ms = 0
        if self.deadline != inf:
            left_ms = ceil((self.deadline - monotonic()) * 1000)
            timeout_ms = min(max(left_ms, 1), _TIMEOUT_MS_MAX)
        body_bytes = len(self._body)
        head = _envelope.request_head(
            self._method.field,
            self._operation_id,
            timeout_ms,
            self._traceparent,
            self._token + _envelope.SYNC if self._sync else self._token,
            body_bytes,
        )
        if len(head) + body_bytes > _envelope.REQUEST_BYTES_MAX:
            raise _status.too_long()
        return head

    @property
    def body(self) -> bytes:
        return self._body

    def retry_in(self, failure: Failure) -> Optional[float]:
        """Returns how long to wait before the next attempt, or None if there is none.

        Nothing is sent twice unless the caller asked for retries. A request of which nothing was
        sent is repeated on a new connection, because the old one was stale.
        """
        if failure.is_broken and not failure.was_sent and self._stale < 2:
            self._stale += 1
            return 0.0
        if not self._retries or failure.code != UNAVAILABLE:
            return None
        if failure.is_broken and failure.was_sent and not self._is_repeatable:
            return None
        wait = 0.0  # at first: a restarted server is already back
        if self._backoff is None:
            self._backoff = Backoff()
            if not failure.is_broken:  # the server answered that it is not ready
                wait = self._backoff.next()
        else:
            wait = self._backoff.next()
        return wait if monotonic() + wait < self.connect_until else None


def body_of(serializer: Optional[Any], request: Any) -> bytes:
    if serializer is None:
        return bytes(request)
    body: bytes = serializer(request)
    return body


def reply_of(deserializer: Optional[Any], body: bytes) -> Any:
    """Decodes the reply for the stub. Raises Failure."""
    if deserializer is None:
        return body
    try:
        return deserializer(body)
    except Exception:
        raise _status.undecodable() from None
