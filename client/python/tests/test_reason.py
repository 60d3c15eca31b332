"""The reasons equal those of the contract, and every error has one."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from tine.v1 import store_pb2
from tine.v1.store_pb2 import GetSessionRequest
from tine.v1.store_pb2_grpc import StoreServiceStub

import tine
from tests.conftest import WAIT_S, aio_store
from tine import Reason
from tine.testing import Tined

UNKNOWN = GetSessionRequest(session_id="01ARZ3NDEKTSV4RRFFQ69G5FAV")


def test_all_of_the_contract_are_there() -> None:
    names = [name for name, number in store_pb2.Reason.items() if number != 0]
    assert [f"REASON_{reason}" for reason in Reason] == names
    assert [reason.name for reason in Reason] == [reason.value for reason in Reason]


def test_a_reason_is_its_name() -> None:
    assert Reason.HEAD_MOVED == "HEAD_MOVED"
    assert str(Reason.HEAD_MOVED) == f"{Reason.HEAD_MOVED}" == "HEAD_MOVED"
    assert Reason("HEAD_MOVED") is Reason.HEAD_MOVED


def test_the_error_of_a_call(daemon: Tined, store: StoreServiceStub) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        store.GetSession(UNKNOWN)
    check(caught.value)
    future = store.GetSession.future(UNKNOWN)
    error = future.exception(WAIT_S)
    assert isinstance(error, BaseException)
    check(error)

    async def main() -> None:
        async with aio_store(daemon.url) as aio:
            with pytest.raises(grpc.RpcError) as caught:
                await aio.GetSession(UNKNOWN)
            check(caught.value)

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


def check(error: BaseException) -> None:
    assert tine.is_reason(error, Reason.SESSION_NOT_FOUND)
    assert not tine.is_reason(error, Reason.MESSAGE_NOT_FOUND)
    assert str(error).startswith("NOT_FOUND SESSION_NOT_FOUND: ")


def test_the_clients_own_errors_have_one_too(store: StoreServiceStub) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        store.GetSession(UNKNOWN, timeout=0)
    assert tine.is_reason(caught.value, Reason.DEADLINE_EXCEEDED)
    assert str(caught.value).startswith("DEADLINE_EXCEEDED: ")


def test_other_errors_have_none() -> None:
    assert not any(tine.is_reason(ValueError("HEAD_MOVED"), reason) for reason in Reason)
