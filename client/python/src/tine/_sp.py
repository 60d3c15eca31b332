"""The SP wire format: hellos, frames and request ids. Does no I/O."""

from __future__ import annotations

import os
import struct
from typing import Generic, Optional, TypeVar, Union

HELLO_BYTES = 8
REQ, REP, SUB, PUB = 0x30, 0x31, 0x21, 0x20

#: A page of 16 MiB with its envelope and id.
PAYLOAD_BYTES_MAX = 16 * 1024 * 1024 + 64 * 1024

#: The server refuses the 65th request of a connection.
IN_FLIGHT_MAX = 64

ID_BYTES = 4
_ID_MARK = 0x80000000
_INBOX_BYTES = 64 * 1024
_IPC_HEADER = struct.Struct(">BQ")
_TCP_HEADER = struct.Struct(">Q")
_IPC_TYPE = 1

Payload = Union[bytes, bytearray]
Owner = TypeVar("Owner")


class Malformed(Exception):
    """The peer violated the SP protocol; the connection is unusable."""


def hello(protocol: int) -> bytes:
    return b"\0SP\0" + protocol.to_bytes(2, "big") + b"\0\0"


def hello_check(said: bytes, protocol: int) -> None:
    """Raises Malformed if it is not the hello of this protocol."""
    if said != hello(protocol):
        name = {REP: "REP", PUB: "PUB"}[protocol]
        raise Malformed(f"the listening socket is not a {name} socket")


def frame(payload_id: int, envelope: bytes, body: bytes, *, is_tcp: bool) -> bytes:
    """Encodes one request."""
    size = ID_BYTES + len(envelope) + len(body)
    head = _TCP_HEADER.pack(size) if is_tcp else _IPC_HEADER.pack(_IPC_TYPE, size)
    return b"".join((head, payload_id.to_bytes(ID_BYTES, "big"), envelope, body))


class FrameReader:
    """Splits a stream of bytes into payloads.

    Receive into `room()`, then report the number of bytes to `took()`. Small frames pass through an
    inbox, several at a time. A large frame gets its memory at once, as its length says, and is
    received directly into it. `malformed` describes a protocol error after the payloads that were
    returned; nothing follows it.
    """

    __slots__ = (
        "_end",
        "_header",
        "_inbox",
        "_large",
        "_large_end",
        "_large_room",
        "_view",
        "malformed",
    )

    def __init__(self, *, is_tcp: bool = False) -> None:
        self._header = _TCP_HEADER if is_tcp else _IPC_HEADER
        self._inbox = bytearray(_INBOX_BYTES)
        self._view = memoryview(self._inbox)
        self._end = 0
        self._large: Optional[bytearray] = None
        self._large_room = self._view[:0]
        self._large_end = 0
        self.malformed = ""

    @property
    def is_between_frames(self) -> bool:
        return self._end == 0 and self._large is None

    def room(self) -> memoryview:
        """Returns where to receive the next bytes; never empty."""
        if self._large is not None:
            return self._large_room[self._large_end :]
        return self._view[self._end :]

    def took(self, count: int) -> list[Payload]:
        """Returns the payloads that `count` more bytes completed."""
        if self._large is not None:
            self._large_end += count
            if self._large_end < len(self._large):
                return []
            whole, self._large = self._large, None
            self._large_room = self._view[:0]
            return [whole]

        payloads: list[Payload] = []
        begin, end = 0, self._end + count
        header_bytes = self._header.size
        while end - begin >= header_bytes:
            size = self._size_at(begin)
            if self.malformed:
                break
            frame_end = begin + header_bytes + size
            if frame_end > end:
                if header_bytes + size > _INBOX_BYTES:
                    self._large_begin(size, begin + header_bytes, end)
                    begin = end
                break
            payloads.append(bytes(self._view[begin + header_bytes : frame_end]))
            begin = frame_end
        self._end = end - begin
        if begin > 0 and self._end > 0:
            self._view[: self._end] = self._view[begin:end]
        return payloads

    def _size_at(self, begin: int) -> int:
        if self._header is _TCP_HEADER:
            (size,) = _TCP_HEADER.unpack_from(self._inbox, begin)
        else:
            kind, size = _IPC_HEADER.unpack_from(self._inbox, begin)
            if kind != _IPC_TYPE:
                self.malformed = "it sent an invalid SP frame"
        if size > PAYLOAD_BYTES_MAX and not self.malformed:
            self.malformed = "it sent a frame that is too long"
        return int(size)

    def _large_begin(self, size: int, begin: int, end: int) -> None:
        self._large = bytearray(size)
        self._large_room = memoryview(self._large)
        self._large_end = end - begin
        self._large_room[: self._large_end] = self._view[begin:end]


class InFlight(Generic[Owner]):
    """The requests of one connection that have no reply yet, by id.

    A caller that gives up abandons its request. The server may still be executing it, so the
    request occupies its slot until the reply comes.
    """

    __slots__ = ("_abandoned", "_counter", "_waiting", "has_replied")

    def __init__(self) -> None:
        self._waiting: dict[int, Owner] = {}
        self._abandoned: set[int] = set()
        self._counter = int.from_bytes(os.urandom(4), "big")
        self.has_replied = False

    @property
    def has_place(self) -> bool:
        return len(self._waiting) + len(self._abandoned) < IN_FLIGHT_MAX

    @property
    def is_stuck(self) -> bool:
        """Whether all slots are occupied by abandoned requests."""
        return len(self._abandoned) >= IN_FLIGHT_MAX

    def owners(self) -> list[Owner]:
        return list(self._waiting.values())

    def take(self, owner: Owner) -> int:
        """Takes a slot and returns the id of the request."""
        while True:
            self._counter += 1
            payload_id = self._counter & 0x7FFFFFFF | _ID_MARK
            if payload_id not in self._waiting and payload_id not in self._abandoned:
                self._waiting[payload_id] = owner
                return payload_id

    def abandon(self, payload_id: int) -> None:
        if self._waiting.pop(payload_id, None) is not None:
            self._abandoned.add(payload_id)

    def release(self, payload_id: int) -> None:
        """Frees the slot of a request that was not sent."""
        self._waiting.pop(payload_id, None)

    def answer(self, payload: Payload) -> Optional[Owner]:
        """Returns the owner of the reply; None if nobody waits for it. Raises Malformed."""
        if len(payload) < ID_BYTES:
            raise Malformed("it sent an invalid SP frame")
        payload_id = int.from_bytes(payload[:ID_BYTES], "big")
        self.has_replied = True
        owner = self._waiting.pop(payload_id, None)
        if owner is None:
            self._abandoned.discard(payload_id)
        return owner
