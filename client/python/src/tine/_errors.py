"""The errors for callers: grpc.RpcError with code(), details() and trailing metadata."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Callable, Optional

import grpc
import grpc.aio

from tine._grpc import CallFuture
from tine._reason import Reason
from tine._status import Failure

#: The key of the reason in the trailing metadata.
REASON_KEY = "tine-reason"


class TineError(grpc.RpcError, CallFuture):
    """A failed call of the blocking client. It is a future too, for grpc's interceptors."""

    def __init__(self, code: grpc.StatusCode, details: str, reason: str) -> None:
        super().__init__(code, details, reason)
        self._code = code
        self._details = details
        self._reason = reason

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details

    def initial_metadata(self) -> tuple[tuple[str, str], ...]:
        return ()

    def trailing_metadata(self) -> tuple[tuple[str, str], ...]:  # type: ignore[override]
        return ((REASON_KEY, self._reason),) if self._reason else ()

    def debug_error_string(self) -> str:
        return str(self)

    def is_active(self) -> bool:
        return False

    def time_remaining(self) -> Optional[float]:  # type: ignore[override]
        return None

    def cancel(self) -> bool:
        return False

    def add_callback(self, callback: Callable[[], None]) -> bool:
        return False  # the call has ended

    def cancelled(self) -> bool:
        return False

    def running(self) -> bool:
        return False

    def done(self) -> bool:
        return True

    def result(self, timeout: Optional[float] = None) -> Any:
        raise self

    def exception(self, timeout: Optional[float] = None) -> TineError:
        return self

    def traceback(self, timeout: Optional[float] = None) -> Optional[TracebackType]:
        return self.__traceback__

    def add_done_callback(self, fn: Callable[[Any], None]) -> None:
        fn(self)

    def __str__(self) -> str:
        return _text(self._code, self._reason, self._details)

    def __repr__(self) -> str:
        return f"<TineError {self}>"


class TineAioError(grpc.aio.AioRpcError):
    """A failed call of the asyncio client."""

    def __init__(self, code: grpc.StatusCode, details: str, reason: str) -> None:
        self._tine_reason = reason
        super().__init__(code, grpc.aio.Metadata(), self.trailing(), details=details)

    def trailing(self) -> grpc.aio.Metadata:
        return grpc.aio.Metadata(*(((REASON_KEY, self._tine_reason),) if self._tine_reason else ()))

    def __str__(self) -> str:
        return _text(self.code(), self._tine_reason, self.details() or "")

    def __repr__(self) -> str:
        return f"<TineAioError {self}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (TineAioError, (self.code(), self.details(), self._tine_reason))


def _text(code: grpc.StatusCode, reason: str, details: str) -> str:
    """Code, reason and details. A reason that equals the code's name is not repeated."""
    names = code.name if reason in ("", code.name) else f"{code.name} {reason}"
    return f"{names}: {details}"


def error_of(failure: Failure) -> TineError:
    return TineError(failure.status_code, failure.message, failure.reason)


def aio_error_of(failure: Failure) -> TineAioError:
    return TineAioError(failure.status_code, failure.message, failure.reason)


def reason(error: BaseException) -> str:
    """Returns why a call failed: the name of a `Reason`, or "" if the error has none.

    A newer server may return a name that is not in `Reason`. Errors without a reason in the
    contract, such as INTERNAL, have the name of their code, or "".
    """
    trailing_metadata = getattr(error, "trailing_metadata", None)
    for key, value in (trailing_metadata() if trailing_metadata else None) or ():
        if key == REASON_KEY:
            return value.decode() if isinstance(value, bytes) else str(value)
    return ""


def is_reason(error: BaseException, wanted: Reason) -> bool:
    """Whether the error is of a call that failed for this reason."""
    return reason(error) == wanted
