"""Where the daemon is: URLs, and where tined listens when nobody says."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import Optional
from urllib.parse import urlsplit

SOCKET_PATH_BYTES_MAX = 107

_IPC = "ipc://"


@dataclass(frozen=True)
class Address:
    url: str
    path: str  # of the Unix socket; "" with tcp
    host: str = ""
    port: int = 0
    is_in_tmp: bool = False  # the default in /tmp, where anybody could listen in tined's place

    @property
    def is_tcp(self) -> bool:
        return not self.path

    @property
    def events_path(self) -> Optional[str]:
        """Of the bus beside the socket; None when there is none."""
        if self.is_tcp:
            return None
        base = self.path[: -len(".sock")] if self.path.endswith(".sock") else self.path
        events = base + ".events"
        return events if len(os.fsencode(events)) <= SOCKET_PATH_BYTES_MAX else None


def _default_url() -> tuple[str, bool]:
    """$TINE_URL, $TINE_SOCKET, else where tined listens by itself; whether that is in /tmp."""
    url = os.environ.get("TINE_URL")
    if url:
        return url, False
    socket = os.environ.get("TINE_SOCKET")
    if socket:
        is_url = "://" in socket or socket.startswith("embedded:")
        return socket if is_url else _IPC + socket, False
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/"):
        return f"{_IPC}{runtime}/tine/tine.sock", False
    return f"{_IPC}/tmp/tine-{os.geteuid()}/tine.sock", True


def check_private(address: Address) -> None:
    """Before each connection. Raises PermissionError: others could listen there."""
    if not address.is_in_tmp:
        return
    directory = os.path.dirname(address.path)
    try:
        found = os.lstat(directory)
    except FileNotFoundError:
        return
    is_ours = found.st_uid in (os.geteuid(), 0)
    if not stat.S_ISDIR(found.st_mode) or not is_ours or found.st_mode & 0o022:
        raise PermissionError(
            f"{directory} belongs to others, or others can write to it; name a URL"
        )


def address_of(url: Optional[str]) -> Address:
    """Raises ValueError: the URL is none of ours."""
    url, is_in_tmp = (url, False) if url else _default_url()
    if url.startswith(_IPC):
        path = url[len(_IPC) :]
        if not path:
            raise ValueError("the URL names no path of a socket: ipc://PATH")
        size = len(os.fsencode(path))
        if size > SOCKET_PATH_BYTES_MAX:
            raise ValueError(
                f"the path of the socket has {size} bytes, and that of a Unix socket may have at "
                f"most {SOCKET_PATH_BYTES_MAX}: {path}"
            )
        return Address(url=url, path=path, is_in_tmp=is_in_tmp)
    if url.startswith("tcp://"):
        parts = urlsplit(url)
        if not parts.hostname or not parts.port or parts.path or parts.username:
            raise ValueError("a server on tcp is named as tcp://HOST:PORT")
        return Address(url=url, path="", host=parts.hostname, port=parts.port)
    if url.startswith("embedded:"):
        raise ValueError("a store in the process (embedded:) is there in C only; start a tined")
    raise ValueError(f"the URL is none of ipc://PATH and tcp://HOST:PORT: {url}")
