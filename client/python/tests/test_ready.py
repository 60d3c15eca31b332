"""`ready()` of both clients: it waits for a daemon or raises why there is none."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Callable, Optional

import grpc
import pytest

import tine
from tests.conftest import BUILD, WAIT_S, Clock
from tests.test_processes import stop_all
from tine.testing import Tined


def ready(url: str, way: str, timeout: Optional[float] = None, **options: Any) -> None:
    async def ready_aio() -> None:
        async with tine.aio.connect(url, **options) as channel:
            await channel.ready(timeout)

    if way == "aio":
        asyncio.run(asyncio.wait_for(ready_aio(), 2 * WAIT_S))
        return
    with tine.connect(url, **options) as channel:
        channel.ready(timeout)


ways = pytest.mark.parametrize("way", ["blocking", "aio"])


@ways
def test_a_daemon_that_is_there(daemon: Tined, way: str) -> None:
    ready(daemon.url, way)
    ready(daemon.url, way, timeout=WAIT_S, retry=1.0)


@ways
def test_one_that_comes_later(
    clock: Clock, peer: Callable[[str], str], directory: Path, way: str
) -> None:
    def start() -> None:
        if len(clock.waits) == 3:
            peer("status")

    clock.on_wait = start
    ready(f"ipc://{directory}/status.sock", way)
    assert clock.waits == [0.001, 0.002, 0.004]


@ways
def test_none_until_the_time_is_up(clock: Clock, directory: Path, way: str) -> None:
    begin = clock.now
    with pytest.raises(grpc.RpcError) as caught:
        ready(f"ipc://{directory}/none.sock", way, timeout=10.0)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "No such file or directory" in str(caught.value)
    assert clock.now == pytest.approx(begin + 10.0)


@ways
def test_one_that_does_not_answer(peer: Callable[[str], str], way: str) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        ready(peer("hello-then-silent"), way, timeout=0.1)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


@ways
def test_one_that_is_started(directory: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(directory / "state"))
    monkeypatch.setenv("TINE_EPHEMERAL", "1")
    monkeypatch.setenv("TINED", "/nowhere/tined")
    url = f"ipc://{directory}/tine.sock"
    with pytest.raises(grpc.RpcError) as caught:  # at once, without waiting
        ready(url, way, start=True)
    assert "/nowhere/tined" in str(caught.value)
    monkeypatch.setenv("TINED", str(BUILD / "server/tined"))
    ready(url, way, start=True)
    stop_all(directory)


def test_a_client_that_is_closed(daemon: Tined) -> None:
    channel = tine.connect(daemon.url)
    channel.close()
    with pytest.raises(grpc.RpcError) as caught:
        channel.ready()
    assert caught.value.code() is grpc.StatusCode.CANCELLED

    async def main() -> None:
        channel = tine.aio.connect(daemon.url)
        await channel.close()
        with pytest.raises(grpc.RpcError) as caught:
            await channel.channel_ready()
        assert caught.value.code() is grpc.StatusCode.CANCELLED

    asyncio.run(main())
