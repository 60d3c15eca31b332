"""The Python client of tine, the store for the conversations of AI agents.

    import tine
    from tine.v1.store_pb2 import GetSessionRequest
    from tine.v1.store_pb2_grpc import StoreServiceStub

    with tine.connect() as channel:
        store = StoreServiceStub(channel)
        session = store.GetSession(GetSessionRequest(session_id=id), timeout=1.0).session

The stubs are grpc's own, generated from the contract; the channel is ours. What each call does,
and each error it may return, is in proto/tine/v1/store.proto. `tine.aio` is this for asyncio.
"""

from __future__ import annotations

from typing import Optional

from tine import aio
from tine._channel import Channel
from tine._errors import TineError, is_reason, reason
from tine._pages import pages
from tine._reason import Reason
from tine._settings import settings_of
from tine._stream import WatchStream

__all__ = [
    "Channel",
    "Reason",
    "TineError",
    "WatchStream",
    "aio",
    "connect",
    "is_reason",
    "pages",
    "reason",
]


def connect(
    url: Optional[str] = None,
    *,
    token: Optional[str] = None,
    retry: float = 0.0,
    start: bool = False,
) -> Channel:
    """A client of the daemon at `url`: ipc://PATH or tcp://HOST:PORT.

    Without a URL: $TINE_URL, $TINE_SOCKET, else where tined listens by itself.

    token  of a server on tcp: what its token file holds.
    retry  for so many seconds a call that could not be answered is sent again, under the same
           operation_id: the server does it once. 0: what broke is UNAVAILABLE, and nothing is
           sent twice.
    start  starts a tined when none listens (Linux only).

    Connects with the first call, and again after the connection broke. Raises ValueError when
    the URL is none of these, or the path of the socket has more than 107 bytes.
    """
    return Channel(settings_of(url, token, retry, start=start))
