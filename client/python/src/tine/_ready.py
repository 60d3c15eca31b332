"""Decides which attempts `ready()` makes. Does no I/O."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from time import monotonic
from typing import Optional

from tine._backoff import Backoff
from tine._call import Exchange, Settings, deadline_of, method_of
from tine._status import UNAVAILABLE, Failure

_HEALTH = method_of("/tine.v1.StoreService/Health")


class Attempts:
    """The attempts of one `ready()`: it calls Health until the daemon answers."""

    def __init__(self, settings: Settings, timeout: Optional[float]) -> None:
        self._settings = replace(settings, retry_s=0.0)  # no retries within an attempt
        self._deadline = deadline_of(timeout)
        self._backoff = Backoff()
        self._last: Optional[Failure] = None

    def exchange(self) -> Exchange:
        """Returns the next call of Health. Raises the last Failure if the time is up."""
        now = monotonic()
        if self._last and now >= self._deadline:
            raise self._last
        timeout = None if self._deadline == inf else self._deadline - now
        return Exchange(self._settings, _HEALTH, b"", timeout)

    def wait_after(self, failure: Failure) -> float:
        """Returns how many seconds to wait. Raises the failure if there is no next attempt."""
        left = self._deadline - monotonic()
        if failure.code != UNAVAILABLE or failure.cannot_start or left <= 0:
            raise failure
        self._last = failure
        return min(self._backoff.next(is_absent=failure.is_absent), left)
