"""Peers that violate the protocol: every call ends by its deadline and leaks nothing (the fixture
`leaks` checks that)."""

from __future__ import annotations

import asyncio
from typing import Callable

import grpc
import grpc.aio
import pytest
from tine.v1.store_pb2 import GetSessionRequest, WatchEventsRequest
from tine.v1.store_pb2_grpc import StoreServiceStub

import tine
from tests.conftest import WAIT_S, aio_store

#: How a call ends in each mode.
UNAVAILABLE, LATE = grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED
MODES = {
    "garbage": UNAVAILABLE,
    "bad-hello": UNAVAILABLE,
    "half-hello": LATE,
    "silent": LATE,
    "hello-then-silent": LATE,
    "hang-up": UNAVAILABLE,
    "hang-up-after-hello": UNAVAILABLE,
    "hang-up-on-request": UNAVAILABLE,
    "half-frame": LATE,
    "half-frame-close": UNAVAILABLE,
    "length-bomb": UNAVAILABLE,
    "length-huge": UNAVAILABLE,
    "length-over": UNAVAILABLE,
    "wrong-id": LATE,
    "no-id": UNAVAILABLE,
    "garbage-reply": grpc.StatusCode.INTERNAL,
    "twice": grpc.StatusCode.OK,
    "flood": LATE,
}
REQUEST = GetSessionRequest(session_id="fine")


def time_of(mode: str) -> float:
    """The timeout: long, unless it is the deadline that ends the call."""
    return 0.3 if MODES[mode] is LATE else WAIT_S


each_mode = pytest.mark.parametrize("mode", MODES)


@each_mode
def test_blocking(peer: Callable[[str], str], mode: str) -> None:
    with tine.connect(peer(mode)) as channel:
        store = StoreServiceStub(channel)
        for _ in range(3):
            try:
                store.GetSession(REQUEST, timeout=time_of(mode))
                code = grpc.StatusCode.OK
            except grpc.RpcError as error:
                code = error.code()
                assert error.details()
            assert code in (MODES[mode], UNAVAILABLE)
        future = store.GetSession.future(REQUEST, timeout=time_of(mode))
        assert future.code() in (MODES[mode], UNAVAILABLE)


@each_mode
def test_aio(peer: Callable[[str], str], mode: str) -> None:
    url = peer(mode)

    async def main() -> None:
        async with aio_store(url) as aio:
            for _ in range(3):
                code = await aio.GetSession(REQUEST, timeout=time_of(mode)).code()
                assert code in (MODES[mode], UNAVAILABLE)

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


@each_mode
def test_a_watch(peer: Callable[[str], str], mode: str) -> None:
    with tine.connect(peer(mode)) as channel:
        stream = StoreServiceStub(channel).WatchEvents(WatchEventsRequest(), timeout=0.3)
        with pytest.raises(grpc.RpcError):
            next(stream)
        assert stream.code() is not grpc.StatusCode.OK


@each_mode
def test_an_aio_watch(peer: Callable[[str], str], mode: str) -> None:
    url = peer(mode)

    async def main() -> None:
        async with aio_store(url) as aio:
            with pytest.raises(grpc.aio.AioRpcError):
                async for _ in aio.WatchEvents(WatchEventsRequest(), timeout=0.3):
                    continue

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


@pytest.mark.parametrize("mode", ["half-hello", "silent", "hello-then-silent", "half-frame"])
def test_a_client_that_is_closed_meanwhile(peer: Callable[[str], str], mode: str) -> None:
    channel = tine.connect(peer(mode))
    count = 1 if mode == "half-frame" else 3  # two halves in a row are garbage
    futures = [StoreServiceStub(channel).GetSession.future(REQUEST) for _ in range(count)]
    channel.close()
    for future in futures:
        assert future.code() is grpc.StatusCode.CANCELLED
