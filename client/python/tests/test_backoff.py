"""The waits between attempts to connect."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Callable

import grpc
import pytest
from tine.v1.store_pb2 import GetSessionRequest
from tine.v1.store_pb2_grpc import StoreServiceStub

import tine
from tests.conftest import Clock, aio_store, free_port

REQUEST = GetSessionRequest(session_id="fine")


def call(url: str, way: str, retry: float) -> None:
    """Calls GetSession by one of the clients, which waits up to `retry` seconds for a server."""

    async def call_aio() -> None:
        async with aio_store(url, retry=retry) as aio:
            await aio.GetSession(REQUEST)

    if way == "aio":
        asyncio.run(call_aio())
        return
    with tine.connect(url, retry=retry) as channel:
        store = StoreServiceStub(channel)
        if way == "future":
            store.GetSession.future(REQUEST).result()
        else:
            store.GetSession(REQUEST)


ways = pytest.mark.parametrize("way", ["blocking", "future", "aio"])


@ways
@pytest.mark.parametrize("is_refused", [False, True], ids=["ENOENT", "ECONNREFUSED"])
def test_a_server_that_starts_is_met_at_once(
    clock: Clock, peer: Callable[[str], str], directory: Path, way: str, is_refused: bool
) -> None:
    """tined listens about 4 ms after its start, so the fourth attempt reaches it."""
    path = directory / "status.sock"
    if is_refused:
        with socket.socket(socket.AF_UNIX) as killed:  # its file is left
            killed.bind(str(path))

    def start() -> None:
        if len(clock.waits) == 3:
            path.unlink(missing_ok=True)
            peer("status")

    clock.on_wait = start
    call(f"ipc://{path}", way, retry=60.0)
    assert clock.waits == [0.001, 0.002, 0.004]


@ways
def test_the_wait_doubles_up_to_two_seconds(clock: Clock, directory: Path, way: str) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        call(f"ipc://{directory}/none.sock", way, retry=10.0)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert clock.waits[:14] == [0.001 * 2**i for i in range(11)] + [2.0] * 3


@ways
def test_other_failures_are_waited_for_longer(
    clock: Clock, peer: Callable[[str], str], way: str
) -> None:
    for url in (peer("hang-up"), f"tcp://127.0.0.1:{free_port()}"):
        clock.waits.clear()
        with pytest.raises(grpc.RpcError):
            call(url, way, retry=0.5)
        assert clock.waits[:3] == [0.05, 0.1, 0.2]
