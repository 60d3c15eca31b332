"""How a call failed, before that becomes an error of grpcio or grpc.aio."""

from __future__ import annotations

import grpc

from tine._dial import ConnectError

CODES: dict[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}

UNKNOWN_IF_DONE = "; whether the call was done is not known"


class Failure(Exception):
    """A failed call: the status of the server, or an error of the client."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        is_broken: bool = False,
        was_sent: bool = False,
        is_absent: bool = False,
        cannot_start: bool = False,
    ) -> None:
        super().__init__(code, reason, message)
        self.code = code
        self.reason = reason
        self.message = message
        #: The connection broke during the call.
        self.is_broken = is_broken
        #: At least a part of the request was sent: the server may have executed it.
        self.was_sent = was_sent
        #: The same as in ConnectError.
        self.is_absent = is_absent
        self.cannot_start = cannot_start

    @property
    def status_code(self) -> grpc.StatusCode:
        return CODES.get(self.code, grpc.StatusCode.UNKNOWN)


CANCELLED, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, INTERNAL = 1, 4, 8, 13
INVALID_ARGUMENT, OUT_OF_RANGE, UNIMPLEMENTED, UNAVAILABLE = 3, 11, 12, 14


def cancelled() -> Failure:
    return Failure(CANCELLED, "", "the call was cancelled")


def closed() -> Failure:
    return Failure(CANCELLED, "", "the client is closed")


def unreachable(url: str, why: ConnectError) -> Failure:
    return Failure(
        UNAVAILABLE,
        "UNAVAILABLE",
        f"no tined answers at {url}: {why}",
        is_absent=why.is_absent,
        cannot_start=why.cannot_start,
    )


def broken(url: str, why: str, *, was_sent: bool) -> Failure:
    message = f"the connection to {url} broke before the reply came: {why}"
    if was_sent:
        message += UNKNOWN_IF_DONE
    return Failure(UNAVAILABLE, "UNAVAILABLE", message, is_broken=True, was_sent=was_sent)


def late(*, was_sent: bool) -> Failure:
    if was_sent:
        message = "the time is up and there is no reply yet" + UNKNOWN_IF_DONE
    else:
        message = "the time is up before the call could be sent; nothing was done"
    return Failure(DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED", message)


def too_long() -> Failure:
    return Failure(
        INVALID_ARGUMENT, "TOO_LONG", "the request is longer than 16 MiB; send it in several"
    )


def undecodable() -> Failure:
    return Failure(INTERNAL, "INTERNAL", "the reply cannot be decoded")


def no_such_stream(path: str) -> Failure:
    return Failure(UNIMPLEMENTED, "UNIMPLEMENTED", f"there is no stream {path}")
