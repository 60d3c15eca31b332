"""The connection of the asyncio client. All of it runs on one event loop.

A call is a Job. It is sent at once if the connection has a free slot, otherwise it is queued. The
callback that receives the reply finishes the job, so a call needs no task of its own.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from math import inf
from time import monotonic
from typing import Callable, Optional, Union

from tine import _sp, _start, _status
from tine._backoff import Backoff
from tine._call import Exchange, Settings
from tine._dial import CONNECT_S_MAX, ConnectError, connect_error, socket_make, target_of
from tine._envelope import response_body
from tine._place import check_private
from tine._sp import FrameReader, InFlight, Malformed
from tine._status import Failure

_HUNG_UP = "it hung up"
_NO_HELLO = "it hung up before it said hello"

Outcome = Union[bytes, Failure]


class Job:
    """One call. `finished` is called once, with the body of the reply or with the failure."""

    __slots__ = ("_finished", "connection", "exchange", "payload_id", "timers")

    def __init__(self, exchange: Exchange, finished: Callable[[Outcome], None]) -> None:
        self.exchange = exchange
        self._finished: Optional[Callable[[Outcome], None]] = finished
        self.connection: Optional[_Connection] = None  # on which it was sent
        self.payload_id = 0
        self.timers: list[asyncio.TimerHandle] = []

    @property
    def is_finished(self) -> bool:
        return self._finished is None

    def finish(self, outcome: Outcome) -> None:
        finished, self._finished = self._finished, None
        for timer in self.timers:
            timer.cancel()
        self.timers.clear()
        if finished:
            finished(outcome)


class _Connection(asyncio.BufferedProtocol):
    def __init__(self, link: AioLink, *, is_tcp: bool) -> None:
        self._link = link
        self._hello = bytearray(_sp.HELLO_BYTES)
        self._hello_end = 0
        self._reader = FrameReader(is_tcp=is_tcp)
        self.in_flight: InFlight[Job] = InFlight()
        self.transport: Optional[asyncio.Transport] = None
        self.is_ready: asyncio.Future[None] = link.loop.create_future()
        self.why = ""  # it broke; "" while it works

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(_sp.hello(_sp.REQ))

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._hello_end < _sp.HELLO_BYTES:
            return memoryview(self._hello)[self._hello_end :]
        return self._reader.room()

    def buffer_updated(self, nbytes: int) -> None:
        if self.why:
            return
        try:
            if self._hello_end < _sp.HELLO_BYTES:
                self._hello_took(nbytes)
                return
            for payload in self._reader.took(nbytes):
                job = self.in_flight.answer(payload)
                self._link.replied(self)
                if job:
                    self._link.answered(job, payload)
            if self._reader.malformed:
                self.lose(self._reader.malformed)
        except Malformed as error:
            self.lose(str(error))

    def _hello_took(self, nbytes: int) -> None:
        self._hello_end += nbytes
        if self._hello_end == _sp.HELLO_BYTES:
            _sp.hello_check(bytes(self._hello), _sp.REP)
            if not self.is_ready.done():
                self.is_ready.set_result(None)

    def eof_received(self) -> bool:
        return False  # closes the transport

    def connection_lost(self, exc: Optional[Exception]) -> None:
        why = getattr(exc, "strerror", None) or (str(exc) if exc else _HUNG_UP)
        self.lose(why)

    def lose(self, why: str) -> None:
        if self.why:
            return
        self.why = why
        if self.transport:
            self.transport.abort()
        if not self.is_ready.done():
            self.is_ready.set_exception(ConnectError(_NO_HELLO if why == _HUNG_UP else why))
            self.is_ready.exception()  # marks it as retrieved: the dial may have been cancelled
        self._link.lost(self)


class AioLink:
    """Sends requests and receives their replies, on the loop that created it."""

    def __init__(self, settings: Settings) -> None:
        self.loop = asyncio.get_running_loop()
        self._settings = settings
        self._is_closed = False
        self._connection: Optional[_Connection] = None
        self._queue: deque[Job] = deque()
        self._dialing: Optional[asyncio.Task[None]] = None
        self._backoff = Backoff()
        self._connect_after = 0.0
        self._error = ConnectError("")  # of the last failed attempt

    @property
    def is_connected(self) -> bool:
        return self._connection is not None

    def submit(self, job: Job) -> None:
        """Sends the call as soon as a slot is free. Its deadline runs from now."""
        deadline = job.exchange.deadline
        if deadline != inf:
            left = deadline - monotonic()
            if left <= 0:
                job.finish(_status.late(was_sent=False))
                return
            job.timers.append(self.loop.call_later(left, self._expire, job))
        self._attempt(job)

    async def call(self, exchange: Exchange) -> bytes:
        """Makes one call and returns the body of the reply. Raises Failure."""
        answer: asyncio.Future[Outcome] = self.loop.create_future()

        def finished(outcome: Outcome) -> None:
            if not answer.done():
                answer.set_result(outcome)

        job = Job(exchange, finished)
        self.submit(job)
        try:
            outcome = await answer
        except asyncio.CancelledError:
            self.cancel(job, _status.cancelled())
            raise
        if isinstance(outcome, Failure):
            raise outcome
        return outcome

    def cancel(self, job: Job, failure: Failure) -> None:
        """The caller gives up. A late reply is dropped."""
        if job.is_finished:
            return
        if job.connection:
            job.connection.in_flight.abandon(job.payload_id)
            self._send_queued()
        elif job in self._queue:
            self._queue.remove(job)
        job.finish(failure)

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._dialing:
            self._dialing.cancel()
        if self._connection:
            self._connection.lose("the client is closed")
        queue, self._queue = self._queue, deque()
        for job in queue:
            job.finish(_status.closed())

    def after_fork(self) -> None:
        """In the child process; the loop of the parent goes on using the connection.

        The descriptor is replaced by /dev/null. The objects are kept, because destroying them would
        unregister the socket from the epoll instance that the parent shares.
        """
        _of_parent.append(self)
        transport = self._connection.transport if self._connection else None
        sock = transport.get_extra_info("socket") if transport else None
        if sock is not None and sock.fileno() >= 0:
            with open(os.devnull, "rb") as nothing:
                os.dup2(nothing.fileno(), sock.fileno(), inheritable=False)

    async def closed(self) -> None:
        """After `close`: waits until nothing of it is left on the loop."""
        if self._dialing:
            await asyncio.wait([self._dialing])
        await asyncio.sleep(0)  # the transport closes its socket in a callback of the loop

    def _expire(self, job: Job) -> None:
        self.cancel(job, _status.late(was_sent=job.connection is not None))

    def _attempt(self, job: Job) -> None:
        if job.is_finished:
            return
        connection = self._connection
        if self._is_closed:
            job.finish(_status.closed())
        elif connection is None:
            self._wait_for_connection(job)
        elif self._queue or not connection.in_flight.has_place:
            self._queue.append(job)
            self._send_queued()
        else:
            self._send(connection, job)

    def _send(self, connection: _Connection, job: Job) -> None:
        exchange = job.exchange
        try:
            head = exchange.head()
        except Failure as failure:
            job.finish(failure)
            return
        job.connection = connection
        job.payload_id = connection.in_flight.take(job)
        is_tcp = self._settings.address.is_tcp
        assert connection.transport
        connection.transport.write(_sp.frame(job.payload_id, head, exchange.body, is_tcp=is_tcp))

    def _send_queued(self) -> None:
        connection = self._connection
        if connection and self._queue and connection.in_flight.is_stuck:
            connection.lose("it answered none of its calls in time")
            return
        while connection and self._queue and connection.in_flight.has_place:
            self._send(connection, self._queue.popleft())

    def replied(self, connection: _Connection) -> None:
        self._backoff.reset()

    def answered(self, job: Job, payload: _sp.Payload) -> None:
        job.connection = None
        if self._queue:
            self._send_queued()
        try:
            body = response_body(payload)
        except Failure as failure:
            self._failed(job, failure)
        else:
            job.finish(body)

    def _failed(self, job: Job, failure: Failure) -> None:
        wait = None if self._is_closed else job.exchange.retry_in(failure)
        if wait is None:
            job.finish(_status.closed() if self._is_closed else failure)
        else:
            job.timers.append(self.loop.call_later(wait, self._attempt, job))

    def lost(self, connection: _Connection) -> None:
        if self._connection is not connection:
            return  # it was never in use
        self._connection = None
        if not connection.in_flight.has_replied and not self._is_closed:
            self._connect_failed(ConnectError(connection.why))
        for job in connection.in_flight.owners():
            job.connection = None
            url = self._settings.address.url
            self._failed(job, _status.broken(url, connection.why, was_sent=True))
        waiting, self._queue = self._queue, deque()
        for job in waiting:
            self._attempt(job)

    # Connecting

    def _wait_for_connection(self, job: Job) -> None:
        now = monotonic()
        is_patient = now < job.exchange.connect_until
        is_too_early = not self._dialing and now < self._connect_after
        if is_too_early and not is_patient:
            job.finish(_status.unreachable(self._settings.address.url, self._error))
            return
        self._queue.append(job)
        if not self._dialing:
            self._dialing = self.loop.create_task(self._dial())

    async def _dial(self) -> None:
        try:
            wait = self._connect_after - monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
            connection = await self._dial_or_start()
            if self._is_closed:  # the cancellation was too late
                connection.lose("the client is closed")
            else:
                self._connection = connection
        except ConnectError as error:
            self._connect_failed(error)
        except Exception as error:  # of any kind: the waiting calls must get it
            self._connect_failed(ConnectError(repr(error)))
        finally:
            self._dialing = None
        if self._connection:
            self._send_queued()
        else:
            self._give_up_waiting()

    async def _dial_or_start(self) -> _Connection:
        try:
            return await self._dial_once()
        except ConnectError as error:
            if not (error.is_absent and self._settings.starts_tined):
                raise
        is_left = threading.Event()  # asyncio.run waits for its threads
        try:
            path = self._settings.address.path
            await self.loop.run_in_executor(None, _start.start, path, is_left.is_set)
        except _start.StartError as error:
            raise ConnectError(str(error), cannot_start=True) from None
        finally:
            is_left.set()
        return await self._dial_once()

    async def _dial_once(self) -> _Connection:
        address = self._settings.address
        connection = _Connection(self, is_tcp=address.is_tcp)
        try:
            await asyncio.wait_for(self._hello(connection), CONNECT_S_MAX)
        except asyncio.TimeoutError:
            connection.lose("it said no hello")
            raise ConnectError("it accepted, but did not say hello") from None
        except OSError as error:
            connection.lose("it could not be connected to")
            raise connect_error(error, address) from None
        except BaseException:
            connection.lose("the attempt was cancelled")
            raise
        if connection.why:  # it hung up right after its hello
            raise ConnectError(connection.why)
        return connection

    async def _hello(self, connection: _Connection) -> None:
        address = self._settings.address
        made = socket_make(address)
        try:
            check_private(address)
            made.setblocking(False)
            await self.loop.sock_connect(made, target_of(address))
            await self.loop.create_connection(lambda: connection, sock=made)
        except BaseException:
            if connection.transport is None:
                made.close()
            raise
        await connection.is_ready

    def _connect_failed(self, error: ConnectError) -> None:
        self._error = error
        self._connect_after = monotonic() + self._backoff.next(is_absent=error.is_absent)

    def _give_up_waiting(self) -> None:
        """After a failed attempt: calls that wait for a server stay, the others fail."""
        waiting, self._queue = self._queue, deque()
        for job in waiting:
            if monotonic() < job.exchange.connect_until:
                self._attempt(job)
            else:
                job.finish(_status.unreachable(self._settings.address.url, self._error))


_of_parent: list[AioLink] = []
