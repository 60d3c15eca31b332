"""Calls of the blocking client."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from math import inf
from time import monotonic
from typing import Any, Callable

import grpc
import pytest
from tine.v1.store_pb2 import (
    AppendMessageRequest,
    GetSessionRequest,
    GetSessionResponse,
    HealthRequest,
    ListEventsRequest,
    ListSessionsRequest,
    MessagesForSessionRequest,
    PublishEventRequest,
)
from tine.v1.store_pb2_grpc import StoreServiceStub

import tine
from tests.conftest import WAIT_S, create_session, user_says
from tine._call import Settings
from tine._place import Address, address_of
from tine.testing import Tined

UNKNOWN_SESSION = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def test_a_session_and_its_messages(store: StoreServiceStub) -> None:
    session_id = create_session(store)
    first = store.AppendMessage(user_says(session_id, "one"), timeout=WAIT_S).receipt
    second = store.AppendMessage(user_says(session_id, "two"), timeout=WAIT_S).receipt
    assert second.parent_id == first.id
    reply = store.MessagesForSession(MessagesForSessionRequest(session_id=session_id))
    assert [message.parts[0].text.text for message in reply.messages] == ["one", "two"]


def test_an_error_has_code_details_and_reason(store: StoreServiceStub) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        store.GetSession(GetSessionRequest(session_id=UNKNOWN_SESSION))
    error = caught.value
    assert isinstance(error, tine.TineError)
    assert error.code() is grpc.StatusCode.NOT_FOUND
    assert UNKNOWN_SESSION in (error.details() or "")
    assert tine.reason(error) == "SESSION_NOT_FOUND"
    assert error.trailing_metadata() == (("tine-reason", "SESSION_NOT_FOUND"),)
    again = pickle.loads(pickle.dumps(error))
    assert (again.code(), again.details(), tine.reason(again)) == (
        error.code(),
        error.details(),
        "SESSION_NOT_FOUND",
    )


def test_malformed_ids_and_large_limits_are_refused(store: StoreServiceStub) -> None:
    """A malformed id, and a limit that is too large."""
    session_id = create_session(store)
    listed = store.ListSessions(ListSessionsRequest(limit=1000)).sessions
    assert [session.id for session in listed] == [session_id]
    calls: list[Callable[[], Any]] = [
        lambda: store.GetSession(GetSessionRequest(session_id=session_id[:-1])),
        lambda: store.GetSession(GetSessionRequest(session_id=session_id.lower())),
        lambda: store.ListSessions(ListSessionsRequest(limit=1001)),
        lambda: store.ListEvents(ListEventsRequest(limit=100_001)),
    ]
    for call in calls:
        with pytest.raises(grpc.RpcError) as caught:
            call()
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert tine.is_reason(caught.value, tine.Reason.INVALID_ARGUMENT)


def test_reason_of_other_errors_is_empty() -> None:
    assert tine.reason(ValueError("x")) == ""


def test_with_call(store: StoreServiceStub) -> None:
    reply, call = store.Health.with_call(HealthRequest())
    assert reply.ready
    assert call.code() is grpc.StatusCode.OK


def test_future(store: StoreServiceStub) -> None:
    session_id = create_session(store)
    told: list[Any] = []
    is_told = threading.Event()

    def tell(done: Any) -> None:
        told.append(done)
        is_told.set()

    future = store.GetSession.future(GetSessionRequest(session_id=session_id))
    future.add_done_callback(tell)
    assert future.result(timeout=WAIT_S).session.id == session_id
    assert is_told.wait(WAIT_S)
    assert told == [future]
    assert future.done()
    assert not future.cancelled()
    assert future.code() is grpc.StatusCode.OK
    failed = store.GetSession.future(GetSessionRequest(session_id=UNKNOWN_SESSION))
    with pytest.raises(grpc.RpcError) as caught:
        failed.result(timeout=WAIT_S)
    assert tine.reason(caught.value) == "SESSION_NOT_FOUND"
    assert tine.reason(failed.exception() or ValueError()) == "SESSION_NOT_FOUND"
    assert failed.code() is grpc.StatusCode.NOT_FOUND


def test_a_future_is_cancelled(peer: Callable[[str], str]) -> None:
    with tine.connect(peer("status")) as channel:
        store = StoreServiceStub(channel)
        future = store.GetSession.future(GetSessionRequest(session_id="silent"))
        with pytest.raises(grpc.FutureTimeoutError):
            future.result(timeout=0.01)
        assert future.cancel()
        assert not future.cancel()
        assert future.cancelled()
        assert future.code() is grpc.StatusCode.CANCELLED
        with pytest.raises(grpc.FutureCancelledError):
            future.result(timeout=WAIT_S)
        # Other futures continue.
        other = store.GetSession.future(GetSessionRequest(session_id="fine"))
        assert other.result(timeout=WAIT_S) == GetSessionResponse()


def test_the_deadline_is_kept_here(peer: Callable[[str], str]) -> None:
    with tine.connect(peer("status")) as channel:
        store = StoreServiceStub(channel)
        begun = monotonic()
        with pytest.raises(grpc.RpcError) as caught:
            store.GetSession(GetSessionRequest(session_id="silent"), timeout=0.1)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert monotonic() - begun >= 0.1
        future = store.GetSession.future(GetSessionRequest(session_id="silent"), timeout=0.1)
        assert future.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        # A late reply is dropped, and the connection stays.
        with pytest.raises(grpc.RpcError):
            store.GetSession(GetSessionRequest(session_id="delay:150"), timeout=0.05)
        store.GetSession(GetSessionRequest(session_id="delay:250"), timeout=WAIT_S)


@pytest.mark.parametrize("timeout", [0.0, -1.0])
def test_a_deadline_that_has_passed(store: StoreServiceStub, timeout: float) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        store.Health(HealthRequest(), timeout=timeout)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert "nothing was done" in (caught.value.details() or "")


def test_the_same_operation_id_is_done_once(store: StoreServiceStub) -> None:
    session_id = create_session(store)
    metadata = (("tine-operation-id", "once"),)
    receipts = [
        store.AppendMessage(user_says(session_id, "x"), metadata=metadata).receipt.id
        for _ in range(2)
    ]
    assert receipts[0] == receipts[1]
    with pytest.raises(grpc.RpcError) as caught:
        store.AppendMessage(user_says(session_id, "y"), metadata=metadata)
    assert tine.reason(caught.value) == "OPERATION_ID_REUSED"


def test_writes_have_an_operation_id_of_their_own(store: StoreServiceStub) -> None:
    begin = store.ListEvents(ListEventsRequest()).newest_sequence
    store.PublishEvent(PublishEventRequest(type="made"))
    store.PublishEvent(PublishEventRequest(type="none"), metadata=(("tine-operation-id", ""),))
    store.PublishEvent(PublishEventRequest(type="given"), metadata=(("tine-operation-id", "g"),))
    events = store.ListEvents(ListEventsRequest(after_sequence=begin)).events
    made, none, given = (event.operation_id for event in events)
    assert len(made) >= 26
    assert (none, given) == ("", "g")


def test_a_request_that_is_too_long_is_not_sent(store: StoreServiceStub) -> None:
    session_id = create_session(store)
    with pytest.raises(grpc.RpcError) as caught:
        store.AppendMessage(user_says(session_id, "x" * (16 * 1024 * 1024 + 1)))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert tine.reason(caught.value) == "TOO_LONG"


def test_long_messages(store: StoreServiceStub) -> None:
    session_id = create_session(store)
    size = 15 * 1024 * 1024
    store.AppendMessage(user_says(session_id, "x" * size), timeout=WAIT_S)
    reply = store.MessagesForSession(
        MessagesForSessionRequest(session_id=session_id, page_bytes=16 * 1024 * 1024)
    )
    assert len(reply.messages[0].parts[0].text.text) == size
    futures = [
        store.MessagesForSession.future(MessagesForSessionRequest(session_id=session_id))
        for _ in range(4)
    ]
    for future in futures:
        assert len(future.result(WAIT_S).messages[0].parts[0].text.text) == size


def test_long_messages_both_ways_by_many_threads(store: StoreServiceStub) -> None:
    """A server stops reading while its replies are not received. This must not deadlock."""
    session_id = create_session(store)
    text = "x" * 1_500_000

    def work(i: int) -> int:
        store.AppendMessage(user_says(session_id, text), timeout=2 * WAIT_S)
        page = MessagesForSessionRequest(session_id=session_id, page_bytes=4_000_000)
        return len(store.MessagesForSession(page, timeout=2 * WAIT_S).messages)

    with ThreadPoolExecutor(16) as pool:
        assert min(pool.map(work, range(32))) >= 1


@pytest.mark.parametrize("way", ["threads", "futures"])
def test_the_65th_waits_its_turn(peer: Callable[[str], str], way: str) -> None:
    with tine.connect(peer("status")) as channel:
        store = StoreServiceStub(channel)
        slow, fine = GetSessionRequest(session_id="delay:300"), GetSessionRequest(session_id="f")
        calls: list[Any]
        futures: list[Any]
        with ThreadPoolExecutor(64) as pool:
            if way == "threads":
                calls = [pool.submit(store.GetSession, slow, timeout=WAIT_S) for _ in range(64)]
                futures = [pool.submit(store.GetSession, fine, timeout=WAIT_S)]
            else:
                calls = []
                futures = [store.GetSession.future(slow, timeout=WAIT_S) for _ in range(64)]
                late = store.GetSession.future(fine, timeout=0.05)
                assert late.code() is grpc.StatusCode.DEADLINE_EXCEEDED
                assert "nothing was done" in (late.details() or "")
                futures.append(store.GetSession.future(fine, timeout=WAIT_S))
            for call in calls + futures:
                assert call.result(WAIT_S) == GetSessionResponse()


def test_one_whose_turn_does_not_come(peer: Callable[[str], str]) -> None:
    with tine.connect(peer("status")) as channel, ThreadPoolExecutor(64) as pool:
        store = StoreServiceStub(channel)
        slow = GetSessionRequest(session_id="delay:500")
        calls = [pool.submit(store.GetSession, slow, timeout=WAIT_S) for _ in range(64)]
        # The end of this call shows whether all 64 have been sent.
        while True:
            with pytest.raises(grpc.RpcError) as caught:
                store.GetSession(GetSessionRequest(session_id="silent"), timeout=0.02)
            assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            if "nothing was done" in (caught.value.details() or ""):
                break
        for call in calls:
            call.result(WAIT_S)


def test_many_threads_share_one_connection(store: StoreServiceStub, daemon: Tined) -> None:
    session_id = create_session(store)

    def work(i: int) -> str:
        if i % 2:
            return store.GetSession(GetSessionRequest(session_id=session_id)).session.id
        request = GetSessionRequest(session_id=session_id)
        return store.GetSession(request, timeout=WAIT_S).session.id

    with ThreadPoolExecutor(80) as pool:
        assert set(pool.map(work, range(4000))) == {session_id}


def test_close_ends_calls_in_flight_and_later_ones(peer: Callable[[str], str]) -> None:
    channel = tine.connect(peer("status"))
    store = StoreServiceStub(channel)
    silent = GetSessionRequest(session_id="silent")
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(store.GetSession, silent) for _ in range(4)]
        future = store.GetSession.future(silent)
        store.GetSession(GetSessionRequest(session_id="delay:50"))
        channel.close()
        for call in calls:
            error = call.exception(WAIT_S)
            assert isinstance(error, tine.TineError)
            assert error.code() is grpc.StatusCode.CANCELLED
            assert error.details() == "the client is closed"
    assert future.code() is grpc.StatusCode.CANCELLED
    assert future.details() == "the client is closed"
    later: list[Callable[[], Any]] = [
        lambda: store.GetSession(silent),
        lambda: store.GetSession.future(silent).result(),
    ]
    for late in later:
        with pytest.raises(grpc.RpcError) as caught:
            late()
        assert caught.value.code() is grpc.StatusCode.CANCELLED
    channel.close()


def test_nobody_listens(directory: Any) -> None:
    with tine.connect(f"ipc://{directory}/none.sock") as channel:
        store = StoreServiceStub(channel)
        for _ in range(3):
            with pytest.raises(grpc.RpcError) as caught:
                store.Health(HealthRequest())
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
            assert "no tined answers" in (caught.value.details() or "")
        future = store.Health.future(HealthRequest())
        assert future.code() is grpc.StatusCode.UNAVAILABLE
        with pytest.raises(grpc.RpcError) as caught:
            store.Health(HealthRequest(), timeout=0.2, wait_for_ready=True)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


def test_other_methods_are_unimplemented(store: StoreServiceStub, daemon: Tined) -> None:
    with tine.connect(daemon.url) as channel:
        method: Any = channel.unary_unary("/tine.v1.StoreService/Nothing")
        with pytest.raises(grpc.RpcError) as caught:
            method(b"")
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
        makes: list[Any] = [channel.unary_stream, channel.stream_unary, channel.stream_stream]
        for make in makes:
            with pytest.raises(grpc.RpcError) as caught:
                make("/other.Service/Stream")(b"")
            assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


class _Count(grpc.UnaryUnaryClientInterceptor):
    def __init__(self) -> None:
        self.methods: list[str] = []

    def intercept_unary_unary(
        self, continuation: Any, client_call_details: Any, request: Any
    ) -> Any:
        self.methods.append(client_call_details.method)
        return continuation(client_call_details, request)


def test_interceptors_of_grpc(daemon: Tined) -> None:
    count = _Count()
    with tine.connect(daemon.url) as channel:
        store: StoreServiceStub = StoreServiceStub(grpc.intercept_channel(channel, count))
        assert store.Health(HealthRequest()).ready
        with pytest.raises(grpc.RpcError):
            store.AppendMessage(AppendMessageRequest(session_id=UNKNOWN_SESSION))
        session_id = create_session(store)
        assert session_id
    names = [method.rpartition("/")[2] for method in count.methods]
    assert names == ["Health", "AppendMessage", "CreateSession"]


@pytest.mark.parametrize("timeout", [float(sys.maxsize), inf])
def test_a_timeout_beyond_all_clocks_is_none(peer: Callable[[str], str], timeout: float) -> None:
    """Of many callers one receives, and the others wait for a lock with this timeout."""
    with tine.connect(peer("status"), retry=timeout) as channel, ThreadPoolExecutor(8) as pool:
        store = StoreServiceStub(channel)
        request = GetSessionRequest(session_id="delay:5")
        calls = [pool.submit(store.GetSession, request, timeout=timeout) for _ in range(80)]
        future = store.GetSession.future(request, timeout=timeout)
        for call in calls:
            call.result()
        future.result()


@pytest.mark.parametrize(
    "url",
    ["embedded:x", "http://x", "ipc://", "ipc:///" + "x" * 107, "tcp://host", "tcp://:1", "x"],
)
def test_urls_that_are_none(url: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        tine.connect(url)


def test_the_path_of_a_socket_has_107_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client refuses longer paths before it connects."""
    for path in ("/" + "x" * 106, "/" + "é" * 53):
        assert address_of(f"ipc://{path}").path == path
        with pytest.raises(ValueError, match=r"has 108 bytes; .* at most 107: /.*x$"):
            tine.connect(f"ipc://{path}x")
        with pytest.raises(ValueError, match="has 108 bytes"):
            tine.aio.connect(f"ipc://{path}x")
        monkeypatch.setenv("TINE_SOCKET", f"{path}x")
        with pytest.raises(ValueError, match="has 108 bytes"):
            tine.connect()
    with pytest.raises(ValueError, match="has no path"):
        tine.connect("ipc://")


def test_where_the_daemon_is(monkeypatch: pytest.MonkeyPatch, directory: Any) -> None:
    for name in ("TINE_URL", "TINE_SOCKET", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    assert address_of(None).path == f"/tmp/tine-{os.geteuid()}/tine.sock"
    assert address_of(None).is_in_tmp
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")
    assert address_of(None).path == "/run/user/1/tine/tine.sock"
    monkeypatch.setenv("TINE_SOCKET", "/x/y.sock")
    assert address_of(None).url == "ipc:///x/y.sock"
    assert address_of(None).events_path == "/x/y.events"
    monkeypatch.setenv("TINE_URL", "tcp://localhost:1")
    assert (address_of(None).host, address_of(None).port) == ("localhost", 1)
    assert address_of("ipc://z").events_path == "z.events"
    assert not address_of(None).is_in_tmp


def test_a_directory_of_others_is_not_trusted(daemon: Tined) -> None:
    """The client checks it before each connection."""
    address = Address(url=daemon.url, path=daemon.path, is_in_tmp=True)
    settings = Settings(address=address, token=b"", retry_s=0.0, starts_tined=False)
    with tine.Channel(settings) as channel:
        store = StoreServiceStub(channel)
        store.Health(HealthRequest())
        daemon.kill()
        daemon.directory.chmod(0o777)
        for call in (store.Health, lambda request: store.Health.future(request).result()):
            with pytest.raises(grpc.RpcError) as caught:
                call(HealthRequest())
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
            assert "others can write to it" in (caught.value.details() or "")


class _Interrupt(Exception):
    pass


def test_a_call_that_a_signal_interrupts(peer: Callable[[str], str]) -> None:
    def interrupt(*_: object) -> None:
        raise _Interrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with tine.connect(peer("status")) as channel:
            store = StoreServiceStub(channel)
            for timeout in (None, WAIT_S):
                signal.setitimer(signal.ITIMER_REAL, 0.1)
                with pytest.raises(_Interrupt):
                    store.GetSession(GetSessionRequest(session_id="silent"), timeout=timeout)
                # The connection is in an unknown state, so the next call reconnects.
                waits: dict[str, Any] = {"timeout": WAIT_S, "wait_for_ready": True}
                store.GetSession(GetSessionRequest(session_id="fine"), **waits)
    finally:
        signal.signal(signal.SIGALRM, before)
