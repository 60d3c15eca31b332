"""Finds the address of the daemon: parses URLs and knows the defaults."""

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
    path: str  # of the Unix socket; "" for tcp
    host: str = ""
    port: int = 0
    is_in_tmp: bool = False  # the default in /tmp, where other users could listen

    @property
    def is_tcp(self) -> bool:
        return not self.path

    @property
    def events_path(self) -> Optional[str]:
        """The path of the bus beside the socket; None if there is none."""
        if self.is_tcp:
            return None
        base = self.path[: -len(".sock")] if self.path.endswith(".sock") else self.path
        events = base + ".events"
        return events if len(os.fsencode(events)) <= SOCKET_PATH_BYTES_MAX else None


def _default_url() -> tuple[str, bool]:
    """Returns the default URL, and whether it is in /tmp."""
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
    """Called before each connection. Raises PermissionError if other users could listen there."""
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
    """Parses a URL; None means the default. Raises ValueError if it is invalid."""
    url, is_in_tmp = (url, False) if url else _default_url()
    if url.startswith(_IPC):
        path = url[len(_IPC) :]
        if not path:
            raise ValueError("the URL has no path; it must be ipc://PATH")
        size = len(os.fsencode(path))
        if size > SOCKET_PATH_BYTES_MAX:
            raise ValueError(
                f"the path of the socket has {size} bytes; a Unix socket allows at most "
                f"{SOCKET_PATH_BYTES_MAX}: {path}"
            )
        return Address(url=url, path=path, is_in_tmp=is_in_tmp)
    if url.startswith("tcp://"):
        parts = urlsplit(url)
        if not parts.hostname or not parts.port or parts.path or parts.username:
            raise ValueError("a tcp URL has the form tcp://HOST:PORT")
        return Address(url=url, path="", host=parts.hostname, port=parts.port)
    if url.startswith("embedded:"):
        raise ValueError("an embedded store (embedded:) is supported in C only; start a tined")
    raise ValueError(f"the URL is neither ipc://PATH nor tcp://HOST:PORT: {url}")
