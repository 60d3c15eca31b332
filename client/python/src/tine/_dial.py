"""Opens connections to the daemon."""

from __future__ import annotations

import socket
from time import monotonic
from typing import Union

from tine import _sp
from tine._place import Address, check_private
from tine._sp import Malformed

CONNECT_S_MAX = 5.0


class ConnectError(Exception):
    """Why there is no connection.

    is_absent     nobody listens on the Unix socket
    cannot_start  the client tried to start tined and failed
    """

    def __init__(self, why: str, *, is_absent: bool = False, cannot_start: bool = False) -> None:
        super().__init__(why)
        self.is_absent = is_absent
        self.cannot_start = cannot_start


def socket_make(address: Address) -> socket.socket:
    if not address.is_tcp:
        return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def target_of(address: Address) -> Union[str, tuple[str, int]]:
    return (address.host, address.port) if address.is_tcp else address.path


def connect_error(error: OSError, address: Address) -> ConnectError:
    if isinstance(error, BlockingIOError):
        return ConnectError("it accepts no connection")
    if isinstance(error, TimeoutError):  # raised after socket.settimeout
        return ConnectError("it accepted, but did not say hello")
    is_refused = isinstance(error, (FileNotFoundError, ConnectionRefusedError))
    return ConnectError(error.strerror or str(error), is_absent=is_refused and not address.is_tcp)


def dial(made: socket.socket, address: Address, until: float) -> None:
    """Connects and exchanges hellos. Raises ConnectError; the caller closes the socket."""
    try:
        check_private(address)
        made.settimeout(max(until - monotonic(), 0.001))
        made.connect(target_of(address))
        made.sendall(_sp.hello(_sp.REQ))
        said = b""
        while len(said) < _sp.HELLO_BYTES:
            made.settimeout(max(until - monotonic(), 0.001))
            more = made.recv(_sp.HELLO_BYTES - len(said))
            if not more:
                raise ConnectError("it hung up before it said hello")
            said += more
        _sp.hello_check(said, _sp.REP)
        made.settimeout(None)
    except (socket.timeout, TimeoutError):
        raise ConnectError("it accepted, but did not say hello") from None
    except (BrokenPipeError, ConnectionResetError):
        raise ConnectError("it hung up before it said hello") from None
    except OSError as error:
        raise connect_error(error, address) from None
    except Malformed as error:
        raise ConnectError(str(error)) from None
