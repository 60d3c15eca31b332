"""`future()` of the blocking client.

Futures make progress while nobody waits, so they need a thread. The first future starts it. The
thread runs an asyncio connection of its own and ends when the channel is closed.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
import weakref
from collections import deque
from math import inf
from time import monotonic
from types import TracebackType
from typing import Any, Callable, Optional

import grpc

from tine import _grpc, _status
from tine._aio_link import AioLink, Job, Outcome
from tine._call import Exchange, Settings, reply_of
from tine._errors import REASON_KEY, error_of
from tine._status import Failure


class CallFuture(_grpc.CallFuture):
    """A call that runs in the background."""

    def __init__(self, futures: Futures, exchange: Exchange, deserializer: Any) -> None:
        self._futures = futures
        self._deadline = exchange.deadline
        self._deserializer = deserializer
        self._lock = threading.Lock()
        self._outcome: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._failure: Optional[Failure] = None
        self._is_cancelled = False
        self._is_settled = False
        self.job = Job(exchange, self._finished)

    def _finished(self, outcome: Outcome) -> None:
        try:
            if isinstance(outcome, Failure):
                raise outcome
            self._settle(reply_of(self._deserializer, outcome), None)
        except Failure as failure:
            self._settle(None, failure)

    def _settle(self, reply: Any, failure: Optional[Failure], *, cancels: bool = False) -> bool:
        with self._lock:
            if self._is_settled:
                return False
            self._is_settled = True
            self._failure = failure
            self._is_cancelled = cancels
        # Without the lock: callbacks run here and call this future.
        if failure is None:
            self._outcome.set_result(reply)
        else:
            self._outcome.set_exception(error_of(failure))
        return True

    def cancel(self) -> bool:
        failure = _status.cancelled()
        if not self._settle(None, failure, cancels=True):
            return False
        self._futures.cancel(self.job, failure)
        return True

    def cancelled(self) -> bool:
        return self._is_cancelled

    def running(self) -> bool:
        return not self._outcome.done()

    def done(self) -> bool:
        return self._outcome.done()

    def result(self, timeout: Optional[float] = None) -> Any:
        error = self.exception(timeout)
        if error is not None:
            raise error
        return self._outcome.result()

    def exception(  # type: ignore[override]
        self, timeout: Optional[float] = None
    ) -> Optional[BaseException]:
        try:
            error = self._outcome.exception(timeout)
        except concurrent.futures.TimeoutError:
            raise grpc.FutureTimeoutError from None
        if self._is_cancelled:
            raise grpc.FutureCancelledError
        return error

    def traceback(self, timeout: Optional[float] = None) -> Optional[TracebackType]:
        error = self.exception(timeout)
        return error.__traceback__ if error else None

    def add_done_callback(self, fn: Callable[[Any], None]) -> None:
        self._outcome.add_done_callback(lambda _: fn(self))

    def add_callback(self, callback: Callable[[], None]) -> bool:
        if self._outcome.done():
            return False
        self._outcome.add_done_callback(lambda _: callback())
        return True

    def is_active(self) -> bool:
        return not self._outcome.done()

    def time_remaining(self) -> Optional[float]:  # type: ignore[override]
        return None if self._deadline == inf else max(self._deadline - monotonic(), 0.0)

    def code(self) -> grpc.StatusCode:
        """Waits for the end of the call, as grpcio does."""
        concurrent.futures.wait([self._outcome])
        return self._failure.status_code if self._failure else grpc.StatusCode.OK

    def details(self) -> str:
        concurrent.futures.wait([self._outcome])
        return self._failure.message if self._failure else ""

    def initial_metadata(self) -> tuple[tuple[str, str], ...]:
        return ()

    def trailing_metadata(self) -> tuple[tuple[str, str], ...]:
        concurrent.futures.wait([self._outcome])
        failure = self._failure
        return ((REASON_KEY, failure.reason),) if failure and failure.reason else ()


class Futures:
    """The thread that runs the futures of a channel."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._is_closed = False
        self._reset()
        _all.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._thread: Optional[threading.Thread] = None
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._link: Optional[AioLink] = None
        self._begun: deque[Job] = deque()
        self._is_woken = False

    def after_fork(self) -> None:
        """In the child process, which does not have the thread."""
        if self._link:
            self._link.after_fork()
        self._reset()

    def begin(self, exchange: Exchange, deserializer: Any) -> CallFuture:
        future = CallFuture(self, exchange, deserializer)
        with self._lock:
            if not self._is_closed:
                self._start()
                self._begun.append(future.job)
                is_woken, self._is_woken = self._is_woken, True
                if not is_woken and self._loop:
                    self._loop.call_soon_threadsafe(self._submit)
                return future
        future.job.finish(_status.closed())
        return future

    def cancel(self, job: Job, failure: Failure) -> None:
        with self._lock:
            if self._loop and not self._is_closed:
                self._loop.call_soon_threadsafe(self._cancel, job, failure)

    def close(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            thread, loop = self._thread, self._loop
            if loop:
                loop.call_soon_threadsafe(self._stopped.set)
        if thread and thread is not threading.current_thread():
            thread.join()

    def _start(self) -> None:
        if self._thread:
            return
        is_up = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(is_up,), name="tine-futures", daemon=True
        )
        self._thread.start()
        is_up.wait()

    # The methods below run on the thread.

    def _run(self, is_up: threading.Event) -> None:
        asyncio.run(self._serve(is_up))

    async def _serve(self, is_up: threading.Event) -> None:
        loop = asyncio.get_running_loop()
        self._link = AioLink(self._settings)
        self._stopped: asyncio.Event = asyncio.Event()
        self._loop = loop
        is_up.set()
        await self._stopped.wait()
        self._submit()
        self._link.close()
        await self._link.closed()

    def _submit(self) -> None:
        self._is_woken = False
        while self._begun and self._link:
            self._link.submit(self._begun.popleft())

    def _cancel(self, job: Job, failure: Failure) -> None:
        if self._link:
            self._link.cancel(job, failure)


_all: weakref.WeakSet[Futures] = weakref.WeakSet()


def _after_fork() -> None:
    for futures in list(_all):
        futures.after_fork()


os.register_at_fork(after_in_child=_after_fork)
