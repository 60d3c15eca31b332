"""Forks of a process that uses the client; a tined that the client starts."""

from __future__ import annotations

import asyncio
import fcntl
import multiprocessing
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from tine.v1.store_pb2 import (
    HealthRequest,
    MessagesForSessionRequest,
    PublishEventRequest,
    WatchEventsRequest,
)
from tine.v1.store_pb2_grpc import StoreServiceStub

import tine
from tests.conftest import BUILD, WAIT_S, aio_store, create_session, user_says
from tine import _start
from tine.testing import Tined

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


def in_child(work: Any) -> None:
    """Runs it in a fork of this process."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(int(WAIT_S))
            work()
            code = 0
        except BaseException as error:
            os.write(2, repr(error).encode())
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0


def test_a_child_goes_on_with_a_connection_of_its_own(store: StoreServiceStub) -> None:
    session_id = create_session(store)
    store.AppendMessage.future(user_says(session_id, "future")).result()
    watch = store.WatchEvents(WatchEventsRequest(), timeout=WAIT_S)

    def work() -> None:
        for i in range(20):
            store.AppendMessage(user_says(session_id, f"child {i}"), timeout=WAIT_S)
        store.AppendMessage.future(user_says(session_id, "of child"), timeout=WAIT_S).result()
        # The watch goes on from its position.
        assert [next(watch).event.type for _ in range(21)] == 21 * ["message.appended"]

    in_child(work)
    for i in range(20):
        store.AppendMessage(user_says(session_id, f"parent {i}"), timeout=WAIT_S)
    assert [next(watch).event.type for _ in range(41)] == 41 * ["message.appended"]
    watch.cancel()
    store.AppendMessage.future(user_says(session_id, "again")).result()
    reply = store.MessagesForSession(MessagesForSessionRequest(session_id=session_id))
    assert len(reply.messages) == 43


def test_a_fork_while_other_threads_call(store: StoreServiceStub) -> None:
    """A lock that a thread held at the fork must not block the child."""
    is_over = threading.Event()

    def work() -> None:
        while not is_over.is_set():
            store.Health(HealthRequest(), timeout=WAIT_S)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            in_child(lambda: store.Health(HealthRequest(), timeout=WAIT_S))
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def _append(arguments: tuple[str, str, int]) -> str:
    url, session_id, i = arguments
    with tine.connect(url) as channel:
        store = StoreServiceStub(channel)
        return store.AppendMessage(user_says(session_id, str(i)), timeout=WAIT_S).receipt.id


def test_multiprocessing(daemon: Tined, store: StoreServiceStub) -> None:
    session_id = create_session(store)
    with multiprocessing.get_context("fork").Pool(4) as pool:
        ids = pool.map(_append, [(daemon.url, session_id, i) for i in range(40)])
        pool.close()
        pool.join()
    assert len(set(ids)) == 40


def test_a_fork_of_an_asyncio_program(daemon: Tined) -> None:
    async def main() -> None:
        async with aio_store(daemon.url) as aio:
            assert (await aio.Health(HealthRequest())).ready

            def work() -> None:
                with tine.connect(daemon.url) as channel:
                    StoreServiceStub(channel).Health(HealthRequest(), timeout=WAIT_S)

            in_child(work)
            await aio.PublishEvent(PublishEventRequest(type="after"))

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


@pytest.fixture
def places(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sets the environment in which a client starts a tined of the test's own."""
    monkeypatch.setenv("TINED", str(BUILD / "server/tined"))
    monkeypatch.setenv("XDG_STATE_HOME", str(directory / "state"))
    monkeypatch.setenv("TINE_EPHEMERAL", "1")
    return directory


def stop_all(directory: Path) -> None:
    lock = directory / "tine.sock.lock"
    pid = int(lock.read_text().split()[0])
    ended = os.pidfd_open(pid)
    try:
        os.kill(pid, signal.SIGTERM)
        select.select([ended], [], [], WAIT_S)
    finally:
        os.close(ended)
    with suppress(ChildProcessError):  # it may be a child of another process
        os.waitpid(pid, 0)


def test_start(places: Path) -> None:
    url = f"ipc://{places}/tine.sock"
    with tine.connect(url, start=True) as channel:
        store = StoreServiceStub(channel)
        assert store.Health(HealthRequest(), timeout=WAIT_S).ready
        with tine.connect(url, start=True) as other:
            assert StoreServiceStub(other).Health(HealthRequest(), timeout=WAIT_S).ready
        stop_all(places)
        # If it has ended, it is started again.
        assert store.Health(HealthRequest(), timeout=WAIT_S).ready
    stop_all(places)
    assert (places / "state/tine/tined.log").exists()

    async def main() -> None:
        async with aio_store(url, start=True) as aio:
            assert (await aio.Health(HealthRequest(), timeout=WAIT_S)).ready

    asyncio.run(main())
    stop_all(places)


def test_many_start_one(places: Path) -> None:
    program = f"""
import tine
from tine.v1.store_pb2 import StatsRequest
from tine.v1.store_pb2_grpc import StoreServiceStub
with tine.connect("ipc://{places}/tine.sock", start=True) as channel:
    print(StoreServiceStub(channel).Stats(StatsRequest(), timeout=60).started_at)
"""
    started = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    told = {process.communicate()[0] for process in started}
    assert len(told) == 1
    assert told.pop().strip().isdigit()
    stop_all(places)


def test_why_none_is_started(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINE_LOG_LEVEL", "nonsense")
    with tine.connect(f"ipc://{places}/tine.sock", start=True) as channel:
        with pytest.raises(grpc.RpcError) as caught:
            StoreServiceStub(channel).Health(HealthRequest(), timeout=WAIT_S)
        assert "tined does not start" in (caught.value.details() or "")
    monkeypatch.setenv("TINED", "/nowhere/tined")
    with tine.connect(f"ipc://{places}/tine.sock", start=True) as channel:
        with pytest.raises(grpc.RpcError) as caught:
            StoreServiceStub(channel).Health(HealthRequest(), timeout=WAIT_S)
        assert "/nowhere/tined" in (caught.value.details() or "")
    with pytest.raises(ValueError, match="ipc://"):
        tine.connect("tcp://127.0.0.1:1", start=True)


def test_a_log_that_cannot_be_written(places: Path) -> None:
    url = f"ipc://{places}/tine.sock"
    (places / "state/tine/tined.log").mkdir(parents=True)
    with tine.connect(url, start=True) as channel:
        store = StoreServiceStub(channel)
        for health in (store.Health, lambda request: store.Health.future(request).result()):
            with pytest.raises(grpc.RpcError) as caught:
                health(HealthRequest())
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
            assert "tined.log" in (caught.value.details() or "")

    async def main() -> None:
        async with aio_store(url, start=True) as aio:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await aio.Health(HealthRequest())
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
            assert "tined.log" in (caught.value.details() or "")

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


@pytest.fixture
def held(places: Path) -> Iterator[Path]:
    """Another process holds the lock for starting a tined."""
    (places / "state/tine").mkdir(parents=True)
    with open(places / "state/tine/start.lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield places


def test_a_deadline_holds_while_another_starts_one(held: Path) -> None:
    url = f"ipc://{held}/tine.sock"
    with tine.connect(url, start=True) as channel:
        store = StoreServiceStub(channel)
        for call in (store.Health, lambda *a, **k: store.Health.future(*a, **k).result()):
            with pytest.raises(grpc.RpcError) as caught:
                call(HealthRequest(), timeout=0.1)
            assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED

    async def main() -> None:
        async with aio_store(url, start=True) as aio:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await aio.Health(HealthRequest(), timeout=0.1)
            assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED

    asyncio.run(main())  # asyncio.run waits for the threads of the loop


def test_a_client_is_closed_while_it_waits_for_another_to_start_one(held: Path) -> None:
    channel = tine.connect(f"ipc://{held}/tine.sock", start=True)
    codes: list[grpc.StatusCode] = []

    def call() -> None:
        try:
            StoreServiceStub(channel).Health(HealthRequest())
        except grpc.RpcError as error:
            codes.append(error.code())

    calling = threading.Thread(target=call)
    calling.start()
    channel.close()
    calling.join()
    assert codes == [grpc.StatusCode.CANCELLED]


def test_a_tined_whose_starter_gave_up_is_waited_for(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It becomes ready later. The next client may find the socket in use."""
    slow, go_on, real = places / "slow", places / "go_on", BUILD / "server/tined"
    wait = f"while [ ! -e {go_on} ]; do sleep 0.01; done"
    slow.write_text(f'#!/bin/sh\n{wait}\nexec {real} "$@"\n')
    slow.chmod(0o700)
    monkeypatch.setenv("TINED", str(slow))
    with tine.connect(f"ipc://{places}/tine.sock", start=True) as channel:
        store = StoreServiceStub(channel)
        with pytest.raises(grpc.RpcError) as caught:
            store.Health(HealthRequest(), timeout=0.1)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        go_on.touch()
        monkeypatch.setenv("TINED", str(real))
        assert store.Health(HealthRequest(), timeout=WAIT_S, wait_for_ready=True).ready
    stop_all(places)
    for pid in _start._started:
        with suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == 0:  # it started only after the other one ended
                os.kill(pid, signal.SIGTERM)
                os.waitpid(pid, 0)
