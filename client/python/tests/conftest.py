"""Fixtures: a tined, a peer that misbehaves or answers on request, and checks for leaks."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import socket
import subprocess
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, cast

import pytest
from tine.v1.records_pb2 import ROLE_USER, ModelRef, NewMessage, Part, Text
from tine.v1.store_pb2 import (
    AppendMessageRequest,
    CreateSessionRequest,
    NewSession,
)
from tine.v1.store_pb2_grpc import StoreServiceStub

import tine
from tine import _aio_link, _call, _dial, _link, _ready
from tine.testing import Tined

if TYPE_CHECKING:
    from tine.v1.store_pb2_grpc import StoreServiceAsyncStub

HERE = Path(__file__).resolve().parent
ROOM = HERE.parent
ROOT = ROOM.parent.parent
BUILD = Path(os.environ.get("TINE_BUILD", ROOT / "build/release"))
os.environ["TINED"] = str(BUILD / "server/tined")
WAIT_S = 30.0  # a test that waits longer has failed


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="tine-") as name:
        yield Path(name)


@pytest.fixture
def daemon() -> Iterator[Tined]:
    with Tined() as tined:
        yield tined


@pytest.fixture
def store(daemon: Tined) -> Iterator[StoreServiceStub]:
    with tine.connect(daemon.url) as channel:
        yield StoreServiceStub(channel)


@pytest.fixture
def peer(directory: Path) -> Iterator[Callable[[str], str]]:
    """Starts a peer in a mode and returns its URL."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(mode: str) -> str:
        path = directory / f"{mode}.sock"
        process = subprocess.Popen(
            [str(BUILD / "tests/wire_peer"), "--socket", str(path), "--mode", mode],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        processes.append(process)
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        return f"ipc://{path}"

    try:
        yield start
    finally:
        for process in processes:
            process.kill()
            process.wait()
            assert process.stdout
            process.stdout.close()


class Clock:
    """A clock that advances only when a client waits between attempts to connect."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []
        self.on_wait: Callable[[], object] = lambda: None

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.waits.append(round(seconds, 6))
        self.now += seconds
        self.on_wait()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    sleep = asyncio.sleep

    async def fake_sleep(seconds: float) -> None:
        if seconds > 0:
            made.wait(seconds)
        await sleep(0)

    monkeypatch.setattr(random, "uniform", lambda low, high: 1.0)
    for module in (_call, _dial, _link, _aio_link, _ready):
        monkeypatch.setattr(module, "monotonic", made)
    monkeypatch.setattr(_link, "_wait", lambda condition, until: made.wait(until - made.now))
    monkeypatch.setattr(asyncio, "sleep", fake_sleep)
    return made


def _descriptors() -> set[str]:
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")
        except FileNotFoundError:
            continue  # the descriptor of the listing itself
    return found


@pytest.fixture(autouse=True)
def leaks() -> Iterator[None]:
    """Checks that each test closes its descriptors and ends its threads."""
    gc.collect()
    descriptors, threads = _descriptors(), set(threading.enumerate())
    yield
    gc.collect()
    assert set(threading.enumerate()) <= threads
    assert not _descriptors() - descriptors


@asynccontextmanager
async def aio_store(url: str, **options: Any) -> AsyncIterator[StoreServiceAsyncStub]:
    async with tine.aio.connect(url, **options) as channel:
        yield cast("StoreServiceAsyncStub", StoreServiceStub(channel))


def free_port() -> int:
    """A free port below the range of ephemeral ports."""
    for port in random.sample(range(10_000, 30_000), 1000):
        with socket.socket() as free, suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port
    pytest.fail("there is no free port")


def create_session(store: StoreServiceStub) -> str:
    session = NewSession(project_dir="/work", model=ModelRef(provider="anthropic", name="sonnet"))
    reply = store.CreateSession(CreateSessionRequest(session=session), timeout=WAIT_S)
    return reply.session.id


def user_says(session_id: str, text: str) -> AppendMessageRequest:
    message = NewMessage(role=ROLE_USER, parts=[Part(text=Text(text=text))])
    return AppendMessageRequest(session_id=session_id, message=message)
