"""WatchEvents of both clients: in order, no event missing and none twice."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
from functools import partial
from math import inf
from typing import Any, Callable

import grpc
import grpc.aio
import pytest
from tine.v1.store_pb2 import (
    WATCH_START_AFTER,
    WATCH_START_OLDEST,
    BroadcastEventRequest,
    HealthRequest,
    ListEventsResponse,
    PublishEventRequest,
    PurgeSessionRequest,
    StatsResponse,
    WatchEventsRequest,
)
from tine.v1.store_pb2_grpc import StoreServiceStub

import tine
from tests.conftest import (
    WAIT_S,
    aio_store,
    create_session,
    free_port,
    user_says,
)
from tine import _sp
from tine._aio_stream import Bus
from tine._status import RESOURCE_EXHAUSTED, UNAVAILABLE, Failure
from tine._watch import Fetch, Find, Pause, Watch
from tine.testing import Tined


def take(watch: Any, count: int) -> list[str]:
    return [next(watch).event.type for _ in range(count)]


def test_what_happens_from_now_on(store: StoreServiceStub) -> None:
    store.PublishEvent(PublishEventRequest(type="before"))
    watch = store.WatchEvents(WatchEventsRequest(), timeout=WAIT_S)
    for i in range(50):
        store.PublishEvent(PublishEventRequest(type=f"kept{i}"))
        store.BroadcastEvent(BroadcastEventRequest(type=f"told{i}"))
    wanted = [name for i in range(50) for name in (f"kept{i}", f"told{i}")]
    assert take(watch, 100) == wanted
    assert watch.is_active()
    assert watch.code() is None
    assert watch.cancel()
    assert not watch.cancel()
    with pytest.raises(grpc.RpcError) as caught:
        next(watch)
    assert caught.value.code() is grpc.StatusCode.CANCELLED
    assert watch.code() is grpc.StatusCode.CANCELLED


def test_one_session_one_prefix_and_a_position(store: StoreServiceStub) -> None:
    one, other = create_session(store), create_session(store)
    for i in range(3):
        store.AppendMessage(user_says(one, str(i)))
        store.AppendMessage(user_says(other, str(i)))
    request = WatchEventsRequest(session_id=one, start=WATCH_START_OLDEST)
    watch = store.WatchEvents(request, timeout=WAIT_S)
    store.AppendMessage(user_says(other, "more"))
    store.AppendMessage(user_says(one, "more"))
    events = [next(watch).event for _ in range(5)]
    watch.cancel()
    assert {event.session_id for event in events} == {one}
    assert [event.type for event in events] == ["session.created"] + 4 * ["message.appended"]

    request = WatchEventsRequest(
        type_prefix="session.",
        start=WATCH_START_AFTER,
        after_sequence=events[0].sequence,
        instance_id=events[0].instance_id,
    )
    watch = store.WatchEvents(request, timeout=WAIT_S)
    assert next(watch).event.session_id == other
    watch.cancel()


def test_how_a_watch_ends(store: StoreServiceStub) -> None:
    session_id = create_session(store)
    watch = store.WatchEvents(WatchEventsRequest(session_id=session_id), timeout=WAIT_S)
    store.PurgeSession(PurgeSessionRequest(session_id=session_id))
    with pytest.raises(grpc.RpcError) as caught:
        for _ in watch:
            continue
    assert tine.reason(caught.value) == "SESSION_NOT_FOUND"
    ends = [
        (WatchEventsRequest(session_id=session_id), "SESSION_NOT_FOUND"),
        (WatchEventsRequest(start=WATCH_START_AFTER, after_sequence=10**6), "STORE_CHANGED"),
    ]
    for request, reason in ends:
        with pytest.raises(grpc.RpcError) as caught:
            next(store.WatchEvents(request, timeout=WAIT_S))
        assert tine.reason(caught.value) == reason
    with pytest.raises(grpc.RpcError) as caught:
        next(store.WatchEvents(WatchEventsRequest(), timeout=0.2))
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


def test_cancelled_and_closed_by_another_thread(daemon: Tined) -> None:
    for end in ("cancel", "close"):
        channel = tine.connect(daemon.url)
        watch = StoreServiceStub(channel).WatchEvents(WatchEventsRequest())
        told: list[str] = []
        watch.add_callback(partial(told.append, "ended"))
        ending = threading.Thread(target=watch.cancel if end == "cancel" else channel.close)
        ending.start()
        with pytest.raises(grpc.RpcError) as caught:
            next(watch)
        ending.join()
        assert caught.value.code() is grpc.StatusCode.CANCELLED
        assert told == ["ended"]
        channel.close()


def test_a_burst_that_the_bus_cannot_hold(store: StoreServiceStub) -> None:
    """More than the server buffers for a slow subscriber: lost events are listed."""
    watch = store.WatchEvents(WatchEventsRequest(), timeout=4 * WAIT_S)
    count = 12_000
    pending: list[Any] = []
    for i in range(count):
        request = PublishEventRequest(type="burst", data_json=str(i))
        pending.append(store.PublishEvent.future(request, timeout=WAIT_S))
        if len(pending) == 256:
            for future in pending:
                future.result()
            pending.clear()
    for future in pending:
        future.result()
    events = [next(watch).event for _ in range(count)]
    begin = events[0].sequence
    assert [event.sequence for event in events] == list(range(begin, begin + count))
    watch.cancel()


def test_aio(daemon: Tined) -> None:
    async def main() -> None:
        async with aio_store(daemon.url) as aio:
            watch = aio.WatchEvents(WatchEventsRequest(), timeout=WAIT_S)
            await watch.wait_for_connection()
            for i in range(20):
                await aio.PublishEvent(PublishEventRequest(type=f"kept{i}"))
                await aio.BroadcastEvent(BroadcastEventRequest(type=f"told{i}"))
            seen = []
            async for response in watch:
                seen.append(response.event.type)
                if len(seen) == 40:
                    break
            assert seen == [name for i in range(20) for name in (f"kept{i}", f"told{i}")]
            assert watch.cancel()
            assert watch.cancelled()
            with pytest.raises(asyncio.CancelledError):
                await watch.read()
            assert await watch.code() is grpc.StatusCode.CANCELLED

            gone = WatchEventsRequest(session_id="01ARZ3NDEKTSV4RRFFQ69G5FAV")
            ended = aio.WatchEvents(gone)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await ended.read()
            assert tine.reason(caught.value) == "SESSION_NOT_FOUND"
            assert await ended.code() is grpc.StatusCode.NOT_FOUND
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await aio.WatchEvents(WatchEventsRequest(), timeout=0.1).read()
            assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED

    asyncio.run(asyncio.wait_for(main(), 2 * WAIT_S))


def test_aio_what_has_come_is_given_out_before_the_end(daemon: Tined) -> None:
    async def main() -> None:
        async with aio_store(daemon.url) as aio:
            store: Any = aio
            with tine.connect(daemon.url) as channel:
                session_id = create_session(StoreServiceStub(channel))
            watch = store.WatchEvents(WatchEventsRequest(session_id=session_id))
            await watch.wait_for_connection()
            for i in range(3):
                await store.AppendMessage(user_says(session_id, str(i)))
            while watch._ready.qsize() < 3:
                await store.Health(HealthRequest())
            await store.PurgeSession(PurgeSessionRequest(session_id=session_id))
            assert await watch.code() is grpc.StatusCode.NOT_FOUND
            assert [(await watch.read()).event.type for _ in range(3)] == 3 * ["message.appended"]
            for _ in range(2):
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await watch.read()
                assert tine.reason(caught.value) == "SESSION_NOT_FOUND"

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


def test_aio_a_watch_that_is_left_ends(daemon: Tined) -> None:
    async def main() -> None:
        own = asyncio.all_tasks()
        async with aio_store(daemon.url) as aio:
            store: Any = aio
            await store.PublishEvent(PublishEventRequest(type="kept"))
            for timeout in (None, WAIT_S):
                request = WatchEventsRequest(start=WATCH_START_OLDEST)
                async for response in store.WatchEvents(request, timeout=timeout):
                    assert response.event.type == "kept"
                    break
                while asyncio.all_tasks() != own:
                    gc.collect()
                    await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


def test_aio_a_flood_leaves_the_loop_to_others() -> None:
    async def main() -> None:
        own, other = socket.socketpair()
        own.setblocking(False)
        bus = Bus(own)
        message = b"m" * 1000
        frame = b"\1" + len(message).to_bytes(8, "big") + message
        other.setblocking(False)
        other.sendall(_sp.hello(_sp.PUB) + 100 * frame)
        turns = [0]

        async def count_turns() -> None:
            while True:
                turns[0] += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count_turns())
        for _ in range(100):
            assert await bus.next(inf) == message
        assert turns[0] > 0
        counting.cancel()
        bus.close()
        other.close()

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


def test_over_tcp_with_a_token(directory: Any) -> None:
    port = free_port()
    token = directory / "token"
    token.write_text("secret-of-the-test-0123456789\n")
    token.chmod(0o600)
    url = f"tcp://127.0.0.1:{port}"
    daemon = Tined("--listen", url, "--token-file", str(token), directory=directory)
    secret = "secret-of-the-test-0123456789"
    try:
        daemon.start()
        with tine.connect(url, token=secret) as channel:
            store = StoreServiceStub(channel)
            assert store.Health(HealthRequest(), wait_for_ready=True, timeout=WAIT_S).ready
            watch = store.WatchEvents(WatchEventsRequest(), timeout=WAIT_S)
            for i in range(5):
                store.PublishEvent(PublishEventRequest(type=f"kept{i}"))
            assert take(watch, 5) == [f"kept{i}" for i in range(5)]
            watch.cancel()
            daemon.kill()
            daemon.start()
            assert store.Health(HealthRequest(), wait_for_ready=True, timeout=WAIT_S).ready

        async def main() -> None:
            async with aio_store(url, token=secret) as aio:
                assert (await aio.Health(HealthRequest())).ready
                stream: Any = aio.WatchEvents(WatchEventsRequest(start=WATCH_START_OLDEST))
                assert (await stream.read()).event.type == "kept0"

        asyncio.run(asyncio.wait_for(main(), WAIT_S))
        for wrong in (None, "wrong"):
            with tine.connect(url, token=wrong) as channel, pytest.raises(grpc.RpcError) as caught:
                StoreServiceStub(channel).Health(HealthRequest())
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
            with tine.connect(url, token=wrong) as channel, pytest.raises(grpc.RpcError) as caught:
                channel.ready()
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        with tine.connect(url) as channel:
            store = StoreServiceStub(channel)
            assert store.Health(HealthRequest(), metadata=(("tine-token", secret),)).ready
    finally:
        daemon.stop()


def test_nobody_listens(directory: Any) -> None:
    with tine.connect(f"ipc://{directory}/tine.sock") as channel:
        store = StoreServiceStub(channel)
        with pytest.raises(grpc.RpcError) as caught:
            next(store.WatchEvents(WatchEventsRequest()))
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        begin: list[Callable[[], bool]] = []
        waiting = threading.Thread(
            target=lambda: begin.append(
                store.WatchEvents(WatchEventsRequest(), wait_for_ready=True, timeout=WAIT_S).cancel
            )
        )
        waiting.start()
        daemon = Tined(directory=directory)
        daemon.start()
        try:
            waiting.join()
            begin[0]()
        finally:
            daemon.stop()


def test_a_server_that_has_too_much_to_do_is_waited_for() -> None:
    busy = Failure(RESOURCE_EXHAUSTED, "QUEUE_FULL", "it has too much to do")
    watch = Watch(WatchEventsRequest(), bus_is_there=False)
    with pytest.raises(Failure):
        watch.refused(busy, 1.0)
    watch.found(StatsResponse())
    watch.listed(ListEventsResponse(), 1.0)
    watch.refused(busy, 1.0)
    assert isinstance(watch.step(1.0), Pause)
    patient = Watch(WatchEventsRequest(), bus_is_there=False, patient_until=inf)
    patient.refused(busy, 1.0)
    assert isinstance(patient.step(1.0), Pause)


def test_a_server_that_is_not_there_yet_is_asked_again_at_once() -> None:
    absent = Failure(UNAVAILABLE, "UNAVAILABLE", "no tined answers", is_absent=True)
    watch = Watch(WatchEventsRequest(), bus_is_there=False, patient_until=inf)
    watch.refused(absent, 0.0)
    step = watch.step(0.0)
    assert isinstance(step, Pause)
    assert step.until <= 0.0012


def test_the_caller_says_how_long_a_watch_may_take_to_begin() -> None:
    """A tined may have to be started first. Later a call has a timeout of its own."""
    watch = Watch(WatchEventsRequest(), bus_is_there=False)
    step = watch.step(1.0)
    assert isinstance(step, Find)
    assert step.timeout == inf
    watch.found(StatsResponse())
    step = watch.step(1.0)
    assert isinstance(step, Fetch)
    assert step.timeout == inf
    watch.listed(ListEventsResponse(), 1.0)
    step = watch.step(1.0)
    assert isinstance(step, Fetch)
    assert step.timeout < inf
