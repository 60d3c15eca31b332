"""`pages` of every listing: to the end, left early, and with an error."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.protobuf.message import Message
from tine.v1 import store_pb2
from tine.v1.records_pb2 import (
    ROLE_ASSISTANT,
    Marker,
    ModelRef,
    NewCall,
    NewMemory,
    NewMessage,
    Part,
    Text,
    ToolUse,
)
from tine.v1.store_pb2 import (
    COST_GROUP_SESSION,
    AddCompactionMarkerRequest,
    AppendMessageRequest,
    ListSessionsRequest,
    ListSessionsResponse,
    MessagesForSessionRequest,
    PutOriginalRequest,
    RecordCallRequest,
    RememberSessionMemoryRequest,
)
from tine.v1.store_pb2_grpc import StoreServiceStub

import tine
from tests.conftest import WAIT_S, aio_store, create_session, user_says
from tine.testing import Tined

if TYPE_CHECKING:
    from tine.v1.store_pb2_grpc import StoreServiceAsyncStub

COUNT = 5
SERVICE = store_pb2.DESCRIPTOR.services_by_name["StoreService"]
LISTINGS = {
    method.name: next(
        field.name
        for field in method.output_type.fields
        if field.is_repeated and field.message_type
    )
    for method in SERVICE.methods
    if "cursor" in method.input_type.fields_by_name
}


def fill(store: StoreServiceStub) -> str:
    """Creates COUNT of everything that can be listed. Returns the session."""
    session_id = ""
    for _ in range(COUNT):
        session_id = create_session(store)
        call = NewCall(requested=ModelRef(provider="p", name="m"))
        store.RecordCall(RecordCallRequest(session_id=session_id, call=call))
    for i in range(COUNT):
        marker = Marker(keep_all=True, summary=str(i))
        store.AddCompactionMarker(AddCompactionMarkerRequest(session_id=session_id, marker=marker))
        memory = NewMemory(content=str(i))
        store.RememberSessionMemory(
            RememberSessionMemoryRequest(session_id=session_id, memory=memory)
        )
        call = NewCall(requested=ModelRef(provider="p", name="m"))
        store.RecordCall(RecordCallRequest(session_id=session_id, call=call))
    for i in range(COUNT):
        use = Part(tool_use=ToolUse(id=str(i), name="ls", input_json="{}"))
        parts = [Part(text=Text(text=str(i))), use]
        message = NewMessage(role=ROLE_ASSISTANT, parts=parts)
        receipt = store.AppendMessage(
            AppendMessageRequest(session_id=session_id, message=message)
        ).receipt
        store.PutOriginal(PutOriginalRequest(message_id=receipt.id, content=str(i).encode()))
    return session_id


def request_of(name: str, session_id: str, limit: int) -> Any:
    """A request for everything, in pages of `limit` rows (0: in one page)."""
    input_type = SERVICE.methods_by_name[name].input_type
    request: Any = getattr(store_pb2, input_type.name)()
    fields = input_type.fields_by_name
    if name == "SummarizeCost":
        request.by = COST_GROUP_SESSION
    elif "session_id" in fields:
        request.session_id = session_id
    if "limit" in fields:
        request.limit = limit
    elif limit:
        request.page_bytes = limit
    return request


def rows_of(name: str, page: Message) -> list[bytes]:
    return [row.SerializeToString() for row in getattr(page, LISTINGS[name])]


def test_every_listing_to_its_end(daemon: Tined, store: StoreServiceStub) -> None:
    session_id = fill(store)
    assert len(LISTINGS) >= 12
    for name in LISTINGS:
        whole = rows_of(name, getattr(store, name)(request_of(name, session_id, 0)))
        assert len(whole) >= COUNT, name
        request = request_of(name, session_id, 1)
        paged = list(tine.pages(getattr(store, name), request, timeout=WAIT_S))
        assert len(paged) >= COUNT, name
        assert [row for page in paged for row in rows_of(name, page)] == whole
        assert not request.cursor

    async def main() -> None:
        async with aio_store(daemon.url) as aio:
            for name in LISTINGS:
                request = request_of(name, session_id, 1)
                call = getattr(aio, name)
                paged = [page async for page in tine.aio.pages(call, request, timeout=WAIT_S)]
                whole = rows_of(name, await call(request_of(name, session_id, 0)))
                assert [row for page in paged for row in rows_of(name, page)] == whole

    asyncio.run(asyncio.wait_for(main(), 2 * WAIT_S))


class Counted:
    """A fake call of the stub. It counts, and it fails the third time."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, request: ListSessionsRequest, **options: Any) -> ListSessionsResponse:
        self.calls += 1
        if self.calls == 3:
            raise tine.TineError(grpc.StatusCode.UNAVAILABLE, "gone", "UNAVAILABLE")
        return ListSessionsResponse(next_cursor=f"{request.cursor}+")


def test_pages_are_asked_for_one_by_one() -> None:
    call = Counted()
    request = ListSessionsRequest(cursor="begin")
    listing: Iterator[ListSessionsResponse] = tine.pages(call, request)  # type: ignore[arg-type]
    assert call.calls == 0
    assert [page.next_cursor for page in islice(listing, 2)] == ["begin+", "begin++"]
    assert call.calls == 2


def test_the_error_is_raised_once() -> None:
    listing = tine.pages(Counted(), ListSessionsRequest())  # type: ignore[arg-type,var-annotated]
    seen = 0
    with pytest.raises(tine.TineError):
        for _ in listing:
            seen += 1
    assert seen == 2
    assert list(listing) == []


def test_aio_left_early_and_failing(daemon: Tined, store: StoreServiceStub) -> None:
    session_id = create_session(store)
    for i in range(3):
        store.AppendMessage(user_says(session_id, str(i)))

    def listing(aio: StoreServiceAsyncStub, session_id: str) -> AsyncIterator[Any]:
        request = MessagesForSessionRequest(session_id=session_id, limit=1)
        return tine.aio.pages(aio.MessagesForSession, request)

    async def main() -> None:
        async with aio_store(daemon.url) as aio:
            async for page in listing(aio, session_id):
                assert page.messages[0].parts[0].text.text == "0"
                break
            unknown = listing(aio, "01ARZ3NDEKTSV4RRFFQ69G5FAV")
            with pytest.raises(tine.aio.TineAioError):
                await unknown.__anext__()
            assert [page async for page in unknown] == []

    asyncio.run(asyncio.wait_for(main(), WAIT_S))
