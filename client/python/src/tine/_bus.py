"""Splits the byte stream of the bus into messages. Does no I/O."""

from __future__ import annotations

from collections import deque
from typing import Optional

from tine import _sp
from tine._sp import FrameReader, Malformed


class BusReader:
    """Receive into `room()`, report the number of bytes to `took()`, then call `take()`."""

    def __init__(self) -> None:
        self._hello = bytearray(_sp.HELLO_BYTES)
        self._hello_end = 0
        self._reader = FrameReader()
        self._messages: deque[bytes] = deque()

    def room(self) -> memoryview:
        if self._hello_end < _sp.HELLO_BYTES:
            return memoryview(self._hello)[self._hello_end :]
        return self._reader.room()

    def took(self, count: int) -> None:
        """Raises Malformed."""
        if self._hello_end < _sp.HELLO_BYTES:
            self._hello_end += count
            if self._hello_end == _sp.HELLO_BYTES:
                _sp.hello_check(bytes(self._hello), _sp.PUB)
            return
        self._messages.extend(bytes(payload) for payload in self._reader.took(count))
        if self._reader.malformed:
            raise Malformed(self._reader.malformed)

    def take(self) -> Optional[bytes]:
        return self._messages.popleft() if self._messages else None
