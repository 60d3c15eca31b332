"""The connection of the blocking client, which all its threads share.

There is no reader thread. One of the waiting callers receives for all of them and delivers the
replies to their owners. When its own reply has come it returns, and another waiting caller goes
on receiving. So a single caller sends and receives on its own thread, without a switch. Senders
take turns. The lock of the link protects all state; system calls run without it.
"""

from __future__ import annotations

import os
import select
import socket
import threading
import weakref
from math import inf
from time import monotonic
from typing import Optional

from tine import _sp, _start, _status
from tine._backoff import Backoff
from tine._call import Exchange, Settings
from tine._dial import CONNECT_S_MAX, ConnectError, connect_error, dial, socket_make
from tine._sp import FrameReader, InFlight, Malformed, Payload

_POLL_S_MAX = 60.0
_WRITE_POLL_S_MAX = 0.05  # how often a blocked sender checks whether it must receive
_HUNG_UP = "it hung up"


def poll_ms(until: float, most: float = _POLL_S_MAX) -> int:
    """The timeout of poll(2) for a deadline on the monotonic clock, rounded up."""
    left = min(until - monotonic(), most)
    return int(left * 1000) + 1 if left > 0 else 0


class _Waiter:
    """A caller that waits for its reply."""

    __slots__ = ("is_parked", "payload_id", "reply", "wake")

    def __init__(self) -> None:
        self.payload_id = 0
        self.reply: Optional[Payload] = None
        self.is_parked = False
        self.wake: Optional[threading.Lock] = None

    def park(self, lock: threading.Lock, until: float) -> None:
        """Releases the lock and waits until it is woken or the time is up."""
        if self.wake is None:
            self.wake = threading.Lock()
            self.wake.acquire()
        self.is_parked = True
        lock.release()
        try:
            if until == inf:
                self.wake.acquire()
            else:
                self.wake.acquire(timeout=max(until - monotonic(), 0))
        finally:
            lock.acquire()
            self.is_parked = False

    def rouse(self) -> None:
        if self.is_parked and self.wake is not None and self.wake.locked():
            self.wake.release()


class _Connection:
    """One socket. Its last user closes it."""

    __slots__ = (
        "has_receiver",
        "in_flight",
        "parked",
        "reader",
        "send_turn",
        "sock",
        "users",
        "why",
    )

    def __init__(self, sock: socket.socket, *, is_tcp: bool) -> None:
        self.sock = sock
        self.reader = FrameReader(is_tcp=is_tcp)
        self.in_flight: InFlight[_Waiter] = InFlight()
        self.send_turn = threading.Lock()
        self.has_receiver = False
        self.parked = 0
        self.users = 0
        self.why = ""  # it broke; "" while it works


class Link:
    """Sends requests and receives their replies. Any number of threads may call it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._is_tcp = settings.address.is_tcp
        self._is_closed = False
        self._connection: Optional[_Connection] = None
        self._reset()
        _links.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)  # connected, failed, broken or closed
        self._place_freed = threading.Condition(self._lock)
        self._queued = 0  # callers that wait for a free slot
        self._dialing: Optional[socket.socket] = None
        self._is_connecting = False
        self._attempts = 0
        self._backoff = Backoff()
        self._connect_after = 0.0
        self._error = ConnectError("")  # of the last failed attempt

    def after_fork(self) -> None:
        """In the child process: closes its copy of the connection and starts afresh.

        The locks are replaced, because threads of the parent may have held them.
        """
        for of_parent in (self._dialing, self._connection and self._connection.sock):
            if of_parent:
                of_parent.close()  # only this process's descriptor
        self._connection = None
        self._reset()

    def exchange(self, exchange: Exchange) -> Payload:
        """Makes one attempt and returns the payload of the reply. Raises Failure."""
        head = exchange.head()
        deadline = exchange.deadline
        waiter = _Waiter()
        with self._lock:
            connection = self._place(exchange, waiter)
        was_sent = False
        try:
            data = _sp.frame(waiter.payload_id, head, exchange.body, is_tcp=self._is_tcp)
            was_sent = self._send(connection, data, deadline)
            if was_sent:
                self._await(connection, waiter, deadline)
        except BaseException:
            # A signal handler raised: it is unknown how much was sent or received.
            with self._lock:
                self._break(connection, "a call on it was interrupted")
                self._release(connection)
            raise
        with self._lock:
            try:
                return self._outcome(connection, waiter, was_sent=was_sent)
            finally:
                self._release(connection)

    def pause(self, seconds: float) -> None:
        """Waits; returns earlier if the channel is closed."""
        until = monotonic() + seconds
        with self._lock:
            while not self._is_closed and monotonic() < until:
                _wait(self._changed, until)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            if self._dialing:
                _shut_down(self._dialing)
            if self._connection:
                self._break(self._connection, "the client is closed")
            self._changed.notify_all()
            self._place_freed.notify_all()

    # The caller of the methods below holds the lock, unless they say otherwise.

    def _outcome(self, connection: _Connection, waiter: _Waiter, *, was_sent: bool) -> Payload:
        if waiter.reply is not None:
            return waiter.reply
        url = self._settings.address.url
        if connection.why:
            if self._is_closed:
                raise _status.closed()
            raise _status.broken(url, connection.why, was_sent=was_sent)
        if was_sent:
            connection.in_flight.abandon(waiter.payload_id)
        else:
            connection.in_flight.release(waiter.payload_id)
        self._place_tell()
        raise _status.late(was_sent=was_sent)

    def _place(self, exchange: Exchange, waiter: _Waiter) -> _Connection:
        """Waits for a connection with a free slot and takes the slot. Raises Failure."""
        attempts = self._attempts
        while True:
            if self._is_closed:
                raise _status.closed()
            if exchange.deadline != inf and monotonic() >= exchange.deadline:
                self._place_tell()  # pass on a notification that this caller may have got
                raise _status.late(was_sent=False)
            connection = self._connection
            if connection is None:
                self._connect(exchange, attempts)
            elif connection.in_flight.is_stuck:
                self._break(connection, "it answered none of its calls in time")
            elif self._is_tcp and connection.users == 0 and _has_hung_up(connection.sock):
                self._break(connection, _HUNG_UP)
            elif connection.in_flight.has_place:
                connection.users += 1
                waiter.payload_id = connection.in_flight.take(waiter)
                return connection
            else:
                self._queued += 1
                try:
                    _wait(self._place_freed, exchange.deadline)
                finally:
                    self._queued -= 1

    def _connect(self, exchange: Exchange, attempts: int) -> None:
        """Does one step towards a connection. Raises Failure if this caller must not wait."""
        now = monotonic()
        is_patient = now < exchange.connect_until
        is_too_early = not self._is_connecting and now < self._connect_after
        if not is_patient and (is_too_early or self._attempts != attempts):
            raise _status.unreachable(self._settings.address.url, self._error)
        until = exchange.deadline
        if is_patient:
            until = min(until, exchange.connect_until)
        if self._is_connecting:
            _wait(self._changed, until)
        elif is_too_early:
            _wait(self._changed, min(until, self._connect_after))
        else:
            self._connect_once(exchange.deadline)

    def _connect_once(self, deadline: float) -> None:
        """Makes one attempt, without the lock. Other callers wait for its result."""
        self._is_connecting = True
        self._lock.release()
        made: Optional[socket.socket] = None
        failure = ConnectError("it was interrupted")
        try:
            made = self._dial(deadline)
        except ConnectError as error:
            failure = error
        finally:
            self._lock.acquire()
            self._dialing = None
            self._is_connecting = False
            self._attempts += 1
            if made and not self._is_closed:
                self._connection = _Connection(made, is_tcp=self._is_tcp)
            elif made:
                made.close()
            elif monotonic() < deadline:
                # A short deadline of one caller must not delay the attempts of others.
                self._failed(failure)
            else:
                self._error = failure
            self._changed.notify_all()

    def _dial(self, deadline: float) -> socket.socket:
        """Called without the lock. Raises ConnectError."""
        try:
            return self._dial_once(min(deadline, monotonic() + CONNECT_S_MAX))
        except ConnectError as error:
            if not (error.is_absent and self._settings.starts_tined):
                raise
        try:
            _start.start(
                self._settings.address.path,
                is_given_up=lambda: self._is_closed or monotonic() >= deadline,
            )
        except _start.StartError as error:
            raise ConnectError(str(error), cannot_start=True) from None
        return self._dial_once(min(deadline, monotonic() + CONNECT_S_MAX))

    def _dial_once(self, until: float) -> socket.socket:
        try:
            made = socket_make(self._settings.address)
        except OSError as error:
            raise connect_error(error, self._settings.address) from None
        try:
            with self._lock:
                if self._is_closed:
                    raise ConnectError("the client is closed")
                self._dialing = made
            dial(made, self._settings.address, until)
        except BaseException:
            with self._lock:
                self._dialing = None
            made.close()
            raise
        return made

    def _failed(self, error: ConnectError) -> None:
        self._error = error
        self._connect_after = monotonic() + self._backoff.next(is_absent=error.is_absent)

    def _send(self, connection: _Connection, data: bytes, deadline: float) -> bool:
        """Waits for its turn and sends the frame. Called without the lock.

        Returns False if nothing was sent: the connection broke or the time is up.
        """
        turn = connection.send_turn
        if not turn.acquire(blocking=False) and not turn.acquire(timeout=_lock_timeout(deadline)):
            return False
        sent = 0
        try:
            if connection.why:
                return False
            sent = connection.sock.send(data, socket.MSG_DONTWAIT)
            if sent < len(data):
                sent += self._send_rest(connection, memoryview(data)[sent:], deadline)
        except BlockingIOError:
            sent = self._send_rest(connection, memoryview(data), deadline)
        except OSError as error:
            with self._lock:
                self._break(connection, error.strerror or str(error))
        finally:
            turn.release()
        if 0 < sent < len(data):
            with self._lock:
                self._break(connection, "it stopped reading")
        return sent > 0

    def _send_rest(self, connection: _Connection, rest: memoryview, deadline: float) -> int:
        """Sends the rest of a frame and returns how many bytes were sent.

        The server may stop reading until its replies are received. So a blocked sender receives,
        unless another caller does.
        """
        sent = 0
        while sent < len(rest) and monotonic() < deadline and not connection.why:
            self._wait_writable(connection, deadline)
            try:
                sent += connection.sock.send(rest[sent:], socket.MSG_DONTWAIT)
            except BlockingIOError:
                continue
            except OSError as error:
                with self._lock:
                    self._break(connection, error.strerror or str(error))
        return sent

    def _wait_writable(self, connection: _Connection, deadline: float) -> None:
        with self._lock:
            is_receiver = not connection.has_receiver
            connection.has_receiver = True
        wanted = select.poll()
        events = select.POLLOUT | (select.POLLIN if is_receiver else 0)
        try:
            wanted.register(connection.sock, events)
            most = _POLL_S_MAX if is_receiver else _WRITE_POLL_S_MAX
            ready = wanted.poll(poll_ms(deadline, most))
            if is_receiver and any(found & ~select.POLLOUT for _, found in ready):
                count, why = self._receive(connection, deadline)
                with self._lock:
                    self._deliver(connection, count, why)
        finally:
            if is_receiver:
                with self._lock:
                    self._leave(connection)

    def _await(self, connection: _Connection, waiter: _Waiter, deadline: float) -> None:
        """Waits until the reply is there, the connection broke, or the time is up."""
        is_receiver = False
        lock = self._lock
        lock.acquire()
        try:
            while waiter.reply is None and not connection.why:
                if deadline != inf and monotonic() >= deadline:
                    break
                if is_receiver or not connection.has_receiver:
                    is_receiver = connection.has_receiver = True
                    lock.release()
                    try:
                        count, why = self._receive(connection, deadline)
                    finally:
                        lock.acquire()
                    self._deliver(connection, count, why)
                else:
                    connection.parked += 1
                    try:
                        waiter.park(lock, deadline)
                    finally:
                        connection.parked -= 1
        finally:
            # Also if this caller was woken to receive, but its own reply came first.
            if is_receiver or not connection.has_receiver:
                self._leave(connection)
            lock.release()

    def _receive(self, connection: _Connection, deadline: float) -> tuple[int, str]:
        """Receives once, without the lock. Only the current receiver calls it. Returns the number
        of bytes, and why the connection broke."""
        try:
            if deadline == inf:
                count = connection.sock.recv_into(connection.reader.room())
            else:
                wanted = select.poll()
                wanted.register(connection.sock, select.POLLIN)
                if not wanted.poll(poll_ms(deadline)):
                    return 0, ""
                count = connection.sock.recv_into(connection.reader.room(), 0, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0, ""
        except OSError as error:
            return 0, error.strerror or str(error)
        return count, "" if count else _HUNG_UP

    def _deliver(self, connection: _Connection, count: int, why: str) -> None:
        """Delivers complete replies to their owners. Drops replies that nobody waits for."""
        if why:
            self._break(connection, why)
            return
        try:
            for payload in connection.reader.took(count) if count else ():
                owner = connection.in_flight.answer(payload)
                if owner:
                    owner.reply = payload
                    if owner.is_parked:
                        owner.rouse()
                self._backoff.reset()
                self._place_tell()
            if connection.reader.malformed:
                self._break(connection, connection.reader.malformed)
        except Malformed as error:
            self._break(connection, str(error))

    def _leave(self, connection: _Connection) -> None:
        """Stops receiving and wakes another waiting caller, which goes on."""
        connection.has_receiver = False
        if connection.parked == 0:
            return
        for owner in connection.in_flight.owners():
            if owner.is_parked and owner.reply is None:
                owner.rouse()
                return

    def _break(self, connection: _Connection, why: str) -> None:
        if connection.why:
            return
        connection.why = why
        _shut_down(connection.sock)  # unblocks senders and receivers
        for owner in connection.in_flight.owners():
            owner.rouse()
        if self._connection is connection:
            # A connection without any reply counts as a failed attempt. Otherwise the client would
            # connect in a loop to a server that accepts and hangs up.
            if not connection.in_flight.has_replied:
                self._failed(ConnectError(why))
            self._connection = None
        self._changed.notify_all()
        self._place_freed.notify_all()
        if connection.users == 0:
            connection.sock.close()

    def _release(self, connection: _Connection) -> None:
        connection.users -= 1
        if connection.why and connection.users == 0:
            connection.sock.close()

    def _place_tell(self) -> None:
        if self._queued:
            self._place_freed.notify()


_links: weakref.WeakSet[Link] = weakref.WeakSet()


def _after_fork() -> None:
    for link in list(_links):
        link.after_fork()


os.register_at_fork(after_in_child=_after_fork)


def _wait(condition: threading.Condition, until: float) -> None:
    condition.wait(None if until == inf else max(until - monotonic(), 0))


def _lock_timeout(deadline: float) -> float:
    return -1 if deadline == inf else min(max(deadline - monotonic(), 0), threading.TIMEOUT_MAX)


def _has_hung_up(sock: socket.socket) -> bool:
    """TCP accepts data for a peer that is gone, so this asks first. A Unix socket refuses it."""
    try:
        return not sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _shut_down(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it is not connected
