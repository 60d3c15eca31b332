"""The wire format of SP, without any input or output: hellos, frames, and requests in flight."""

from __future__ import annotations

import os
import struct
from typing import Generic, Optional, TypeVar, Union

HELLO_BYTES = 8
REQ, REP, SUB, PUB = 0x30, 0x31, 0x21, 0x20

#: A page of 16 MiB, its envelope and its id.
PAYLOAD_BYTES_MAX = 16 * 1024 * 1024 + 64 * 1024

#: The server refuses the 65th of a connection.
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
    """The other side sent what is none of SP: the connection is of no use any more."""


def hello(protocol: int) -> bytes:
    return b"\0SP\0" + protocol.to_bytes(2, "big") + b"\0\0"


def hello_check(said: bytes, protocol: int) -> None:
    """Raises Malformed unless it is the hello of that protocol."""
    if said != hello(protocol):
        name = {REP: "REP", PUB: "PUB"}[protocol]
        raise Malformed(f"what listens there is no {name} socket")


def frame(payload_id: int, envelope: bytes, body: bytes, *, is_tcp: bool) -> bytes:
    """One request as it goes over the connection."""
    size = ID_BYTES + len(envelope) + len(body)
    head = _TCP_HEADER.pack(size) if is_tcp else _IPC_HEADER.pack(_IPC_TYPE, size)
    return b"".join((head, payload_id.to_bytes(ID_BYTES, "big"), envelope, body))


class FrameReader:
    """Cuts a stream of bytes into payloads.

    Receive into `room()`, then tell `took()` how much came. Small frames pass through an inbox,
    several at a time; a large one is received straight into its own memory. `malformed` says
    what was wrong behind the payloads that were good; nothing comes after it.
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
        """Where the next bytes go; never empty."""
        if self._large is not None:
            return self._large_room[self._large_end :]
        return self._view[self._end :]

    def took(self, count: int) -> list[Payload]:
        """The payloads that are complete with `count` more bytes."""
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
                self.malformed = "it sent a frame that is none of SP"
        if size > PAYLOAD_BYTES_MAX and not self.malformed:
            self.malformed = "it sent a frame that is too long"
        return int(size)

    def _large_begin(self, size: int, begin: int, end: int) -> None:
        self._large = bytearray(size)
        self._large_room = memoryview(self._large)
        self._large_end = end - begin
        self._large_room[: self._large_end] = self._view[begin:end]


class InFlight(Generic[Owner]):
    """The requests of one connection that have no reply yet, by their ids.

    Who gives up abandons its request: the server may still be at it, so it keeps its place
    until the reply comes.
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
        """All that is in flight was given up."""
        return len(self._abandoned) >= IN_FLIGHT_MAX

    def owners(self) -> list[Owner]:
        return list(self._waiting.values())

    def take(self, owner: Owner) -> int:
        """A place, and the request's id."""
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
        """Of a request that was not sent."""
        self._waiting.pop(payload_id, None)

    def answer(self, payload: Payload) -> Optional[Owner]:
        """Whose reply it is; None when nobody waits for it. Raises Malformed."""
        if len(payload) < ID_BYTES:
            raise Malformed("it sent a frame that is none of SP")
        payload_id = int.from_bytes(payload[:ID_BYTES], "big")
        self.has_replied = True
        owner = self._waiting.pop(payload_id, None)
        if owner is None:
            self._abandoned.discard(payload_id)
        return owner
