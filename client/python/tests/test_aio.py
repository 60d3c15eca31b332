"""Calls of the asyncio client."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Coroutine
from typing import Any, Callable

import grpc
import grpc.aio
import pytest
from tine.v1.store_pb2 import (
    GetSessionRequest,
    GetSessionResponse,
    HealthRequest,
    MessagesForSessionRequest,
)
from tine.v1.store_pb2_grpc import StoreServiceStub

import tine
from tests.conftest import WAIT_S, aio_store, create_session, user_says
from tine._aio_link import AioLink
from tine._settings import settings_of
from tine.testing import Tined

UNKNOWN_SESSION = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, 2 * WAIT_S))


def test_calls_and_errors(daemon: Tined, store: StoreServiceStub) -> None:
    session_id = create_session(store)

    async def main() -> None:
        async with aio_store(daemon.url) as aio:
            call = aio.GetSession(GetSessionRequest(session_id=session_id))
            assert (await call).session.id == session_id
            assert (await call).session.id == session_id
            assert await call.code() is grpc.StatusCode.OK
            assert call.done()
            assert not call.cancelled()
            assert not call.cancel()
            failed = aio.GetSession(GetSessionRequest(session_id=UNKNOWN_SESSION))
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await failed
            error = caught.value
            assert error.code() is grpc.StatusCode.NOT_FOUND
            assert tine.reason(error) == "SESSION_NOT_FOUND"
            assert tine.reason(pickle.loads(pickle.dumps(error))) == "SESSION_NOT_FOUND"
            assert await failed.code() is grpc.StatusCode.NOT_FOUND
            assert UNKNOWN_SESSION in await failed.details()
            assert (await failed.trailing_metadata())["tine-reason"] == "SESSION_NOT_FOUND"

    run(main())


def test_many_at_once_and_long_ones(daemon: Tined, store: StoreServiceStub) -> None:
    session_id = create_session(store)

    async def main() -> None:
        async with aio_store(daemon.url) as aio:
            said = [user_says(session_id, "x" * 1_500_000) for _ in range(12)]
            receipts = await asyncio.gather(*(aio.AppendMessage(one) for one in said))
            assert len({reply.receipt.id for reply in receipts}) == 12
            page = MessagesForSessionRequest(session_id=session_id, page_bytes=16 << 20)
            pages = await asyncio.gather(*(aio.MessagesForSession(page) for _ in range(8)))
            assert {len(reply.messages) for reply in pages} == {11}
            request = GetSessionRequest(session_id=session_id)
            replies = await asyncio.gather(*(aio.GetSession(request) for _ in range(500)))
            assert {reply.session.id for reply in replies} == {session_id}

    run(main())


def test_deadlines_cancellation_and_turns(peer: Callable[[str], str]) -> None:
    url = peer("status")
    silent, fine = GetSessionRequest(session_id="silent"), GetSessionRequest(session_id="fine")

    async def main() -> None:
        async with aio_store(url) as aio:
            for timeout in (0.1, 0, -1):
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await aio.GetSession(silent, timeout=timeout)
                assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            call = aio.GetSession(silent)
            assert call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert await call.code() is grpc.StatusCode.CANCELLED
            # Cancelling the wait cancels the call.
            waited = aio.GetSession(silent)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(waited, 0.05)
            assert waited.cancelled()
            # The 65th waits for a slot, and its deadline runs.
            slow = [aio.GetSession(GetSessionRequest(session_id="delay:300")) for _ in range(64)]
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await aio.GetSession(fine, timeout=0.05)
            assert "nothing was done" in (caught.value.details() or "")
            assert await aio.GetSession(fine, timeout=WAIT_S) == GetSessionResponse()
            assert await asyncio.gather(*slow) == [GetSessionResponse()] * 64

    run(main())


def test_one_that_answers_nothing_is_left(peer: Callable[[str], str]) -> None:
    """If abandoned calls occupy all 64 slots, the client reconnects."""
    url = peer("status")

    async def main() -> None:
        async with aio_store(url) as aio:
            await aio.GetSession(GetSessionRequest(session_id="fine"))
            silent = GetSessionRequest(session_id="silent")
            calls = [aio.GetSession(silent, timeout=0.1) for _ in range(64)]
            await asyncio.gather(*calls, return_exceptions=True)
            await aio.GetSession(GetSessionRequest(session_id="fine"), timeout=WAIT_S)

    run(main())
    with tine.connect(url) as channel:
        store = StoreServiceStub(channel)
        store.GetSession(GetSessionRequest(session_id="fine"))
        for _ in range(64):
            with pytest.raises(grpc.RpcError):
                store.GetSession(GetSessionRequest(session_id="silent"), timeout=0.001)
        store.GetSession(GetSessionRequest(session_id="fine"), timeout=WAIT_S)


def test_close(peer: Callable[[str], str]) -> None:
    url = peer("status")

    async def main() -> None:
        channel = tine.aio.connect(url)
        aio: Any = StoreServiceStub(channel)
        call = aio.GetSession(GetSessionRequest(session_id="silent"))
        await aio.GetSession(GetSessionRequest(session_id="fine"))
        await channel.close()
        for ended in (call, aio.GetSession(GetSessionRequest(session_id="fine"))):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await ended
            assert caught.value.code() is grpc.StatusCode.CANCELLED
            assert caught.value.details() == "the client is closed"

    run(main())


def test_nobody_listens_then_somebody_does(directory: Any) -> None:
    async def main() -> None:
        async with aio_store(f"ipc://{directory}/tine.sock") as aio:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await aio.Health(HealthRequest())
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
            assert "no tined answers" in (caught.value.details() or "")
            waiting = aio.Health(HealthRequest(), wait_for_ready=True, timeout=WAIT_S)
            daemon = Tined(directory=directory)
            daemon.start()
            try:
                assert (await waiting).ready
            finally:
                daemon.stop()

    run(main())


def test_a_channel_goes_to_another_loop(daemon: Tined) -> None:
    channel = tine.aio.connect(daemon.url)
    aio: Any = StoreServiceStub(channel)

    async def ask(*, closes: bool) -> None:
        assert (await aio.Health(HealthRequest())).ready
        if closes:
            await channel.close()
        else:
            channel.link().close()
            await channel.link().closed()

    run(ask(closes=False))
    channel._link = None
    run(ask(closes=True))


@pytest.mark.parametrize("url", ["embedded:x", "x"])
def test_urls_that_are_none(url: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        tine.aio.connect(url)


def test_a_connection_that_comes_after_close_is_given_back(daemon: Tined) -> None:
    """Before Python 3.12 wait_for may return a result although it was cancelled."""

    async def main() -> None:
        link = AioLink(settings_of(daemon.url, None, 0.0, start=False))
        link.close()
        await link._dial()
        assert not link.is_connected
        await link.closed()

    run(main())
