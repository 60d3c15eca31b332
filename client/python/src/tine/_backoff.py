"""How long to wait before an attempt is repeated."""

from __future__ import annotations

import random

_ABSENT_S_MIN = 0.001
_S_MIN, _S_MAX = 0.05, 2.0


class Backoff:
    """The waits between consecutive failures.

    Each wait is twice the previous one, from 50 ms up to 2 s, plus or minus 20 % so that many
    clients do not retry at the same time. If nobody listens on the Unix socket, the first wait is
    1 ms: a tined that was just started listens a few milliseconds later.
    """

    __slots__ = ("_wait_s",)

    def __init__(self) -> None:
        self._wait_s = 0.0

    def next(self, *, is_absent: bool = False) -> float:
        """Returns how many seconds to wait after one more failure."""
        first = _ABSENT_S_MIN if is_absent else _S_MIN
        self._wait_s = min(max(2 * self._wait_s, first), _S_MAX)
        return self._wait_s * random.uniform(0.8, 1.2)

    def reset(self) -> None:
        """Called after a success."""
        self._wait_s = 0.0
