"""Iterates over the pages of a listing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, Optional, Protocol, TypeVar

import grpc
import grpc.aio

from tine._call import Metadata, pairs_of


class Listing(Protocol):
    """A request that has a cursor."""

    cursor: str

    def CopyFrom(self, other: Any) -> None: ...


class Page(Protocol):
    """A reply that has the cursor of the next page; "" in the last page."""

    next_cursor: str


_Listing = TypeVar("_Listing", bound=Listing)
_Page = TypeVar("_Page", bound=Page)


def pages(
    call: grpc.UnaryUnaryMultiCallable[_Listing, _Page],
    request: _Listing,
    *,
    timeout: Optional[float] = None,
    metadata: Optional[Metadata] = None,
    wait_for_ready: Optional[bool] = None,
) -> Iterator[_Page]:
    """Yields all pages of a listing, from the cursor of `request` to the end:

        for page in tine.pages(store.ListSessions, ListSessionsRequest()):
            for session in page.sessions:
                print(session.id)

    Each page is one call, which is made when the page is requested; the options apply to each
    call. A page may be empty. If a call fails, the iterator raises the error and ends.
    """
    at = _copy_of(request)
    pairs = None if metadata is None else tuple(pairs_of(metadata))
    while True:
        page = call(at, timeout=timeout, metadata=pairs, wait_for_ready=wait_for_ready)
        yield page
        if not page.next_cursor:
            return
        at.cursor = page.next_cursor


async def aio_pages(
    call: grpc.aio.UnaryUnaryMultiCallable[_Listing, _Page],
    request: _Listing,
    *,
    timeout: Optional[float] = None,
    metadata: Optional[Metadata] = None,
    wait_for_ready: Optional[bool] = None,
) -> AsyncIterator[_Page]:
    """The same as `tine.pages`, for the stub of an asyncio channel."""
    at = _copy_of(request)
    while True:
        page = await call(at, timeout=timeout, metadata=metadata, wait_for_ready=wait_for_ready)
        yield page
        if not page.next_cursor:
            return
        at.cursor = page.next_cursor


def _copy_of(request: _Listing) -> _Listing:
    """A copy, so that the caller's request is not changed."""
    copy = type(request)()
    copy.CopyFrom(request)
    return copy
