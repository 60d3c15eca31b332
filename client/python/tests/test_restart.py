"""Kills and restarts the daemon under its clients. No write is lost or done twice, and watches go
on without a gap."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import grpc.aio
import pytest
from tine.v1.store_pb2 import (
    WATCH_START_OLDEST,
    HealthRequest,
    ListEventsRequest,
    MessagesForSessionRequest,
    WatchEventsRequest,
)
from tine.v1.store_pb2_grpc import StoreServiceStub

import tine
from tests.conftest import WAIT_S, aio_store, create_session, user_says
from tine.testing import Tined

KILLS, WRITERS, EACH = 4, 8, 60


def stored(store: StoreServiceStub, session_id: str) -> Counter[str]:
    found: Counter[str] = Counter()
    request = MessagesForSessionRequest(session_id=session_id)
    options: dict[str, Any] = {"timeout": WAIT_S, "wait_for_ready": True}
    for page in tine.pages(store.MessagesForSession, request, **options):
        found.update(message.parts[0].text.text for message in page.messages)
    return found


def kill_now_and_then(daemon: Tined, done: threading.Semaphore) -> None:
    """Kills the daemon several times, always after a number of writes."""
    for _ in range(KILLS):
        for _ in range(WRITERS * EACH // (KILLS + 2)):
            done.acquire(timeout=WAIT_S)
        daemon.kill()
        daemon.start()


def events_told(store: StoreServiceStub) -> list[int]:
    reply = store.ListEvents(ListEventsRequest(limit=100_000), timeout=WAIT_S)
    return [event.sequence for event in reply.events]


def test_writers_that_retry(daemon: Tined, store: StoreServiceStub) -> None:
    session_id = create_session(store)
    done = threading.Semaphore(0)
    killer = threading.Thread(target=kill_now_and_then, args=(daemon, done))
    with tine.connect(daemon.url, retry=WAIT_S) as channel:
        writer = StoreServiceStub(channel)

        def write(name: int) -> None:
            for i in range(EACH):
                request = user_says(session_id, f"{name}/{i}")
                if i % 3:
                    writer.AppendMessage(request)
                else:
                    writer.AppendMessage.future(request).result(2 * WAIT_S)
                done.release()

        watch = StoreServiceStub(channel).WatchEvents(
            WatchEventsRequest(start=WATCH_START_OLDEST), timeout=4 * WAIT_S
        )
        seen: list[int] = []
        watcher = threading.Thread(target=lambda: seen.extend(sequences(watch)))
        watcher.start()
        killer.start()
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(write, range(WRITERS)))
        killer.join()
        wanted = {f"{name}/{i}": 1 for name in range(WRITERS) for i in range(EACH)}
        assert stored(writer, session_id) == wanted
        watcher.join()
        assert seen == events_told(writer)[: len(seen)]
        assert len(seen) == 1 + WRITERS * EACH


def sequences(watch: Any) -> list[int]:
    seen = []
    for response in watch:
        seen.append(response.event.sequence)
        if len(seen) == 1 + WRITERS * EACH:
            watch.cancel()
            break
    return seen


def test_writers_that_do_not_retry(daemon: Tined, store: StoreServiceStub) -> None:
    """A failed write may have been done or not. A successful one was done, none twice."""
    session_id = create_session(store)
    done = threading.Semaphore(0)
    killer = threading.Thread(target=kill_now_and_then, args=(daemon, done))
    acknowledged: set[str] = set()
    failed: set[str] = set()

    def write(name: int) -> None:
        for i in range(EACH):
            text = f"{name}/{i}"
            try:
                store.AppendMessage(user_says(session_id, text), timeout=WAIT_S)
                acknowledged.add(text)
            except grpc.RpcError as error:
                assert error.code() is grpc.StatusCode.UNAVAILABLE
                failed.add(text)
                store.Health(HealthRequest(), wait_for_ready=True, timeout=WAIT_S)
            done.release()

    killer.start()
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))
    killer.join()
    found = stored(store, session_id)
    assert set(found.values()) == {1}
    assert acknowledged <= set(found)
    assert set(found) <= acknowledged | failed


def test_aio_writers_and_a_watch(daemon: Tined, store: StoreServiceStub) -> None:
    session_id = create_session(store)
    done = threading.Semaphore(0)
    killer = threading.Thread(target=kill_now_and_then, args=(daemon, done))

    async def main() -> list[int]:
        async with aio_store(daemon.url, retry=WAIT_S) as aio:
            request = WatchEventsRequest(start=WATCH_START_OLDEST, session_id=session_id)
            watch = aio.WatchEvents(request)

            async def write(name: int) -> None:
                for i in range(EACH):
                    await aio.AppendMessage(user_says(session_id, f"{name}/{i}"))
                    done.release()

            async def listen() -> list[int]:
                seen = []
                async for response in watch:
                    seen.append(response.event.sequence)
                    if len(seen) == 1 + WRITERS * EACH:
                        break
                return seen

            listening = asyncio.ensure_future(listen())
            await asyncio.gather(*(write(name) for name in range(WRITERS)))
            return await asyncio.wait_for(listening, WAIT_S)

    killer.start()
    seen = asyncio.run(asyncio.wait_for(main(), 4 * WAIT_S))
    killer.join()
    wanted = {f"{name}/{i}": 1 for name in range(WRITERS) for i in range(EACH)}
    assert stored(store, session_id) == wanted
    assert seen == events_told(store)


def test_the_first_call_after_a_restart(daemon: Tined, store: StoreServiceStub) -> None:
    """The connection is stale. Nothing was sent on it, so the client reconnects."""
    assert store.Health(HealthRequest()).ready
    daemon.kill()
    daemon.start()
    assert store.Health(HealthRequest()).ready


def test_a_daemon_that_is_gone(daemon: Tined, store: StoreServiceStub) -> None:
    assert store.Health(HealthRequest()).ready
    daemon.kill()
    with pytest.raises(grpc.RpcError) as caught:
        store.Health(HealthRequest())
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    with tine.connect(daemon.url, retry=0.3) as channel:
        store = StoreServiceStub(channel)
        with pytest.raises(grpc.RpcError) as caught:
            store.Health(HealthRequest())
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
