"""grpc's abstract base classes: for mypy most are generic, at run time they are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio

if TYPE_CHECKING:
    UnaryUnaryMultiCallable = grpc.UnaryUnaryMultiCallable[Any, Any]
    UnaryStreamMultiCallable = grpc.UnaryStreamMultiCallable[Any, Any]
    CallFuture = grpc._CallFuture[Any]
    CallIterator = grpc._CallIterator[Any]
    AioUnaryUnaryMultiCallable = grpc.aio.UnaryUnaryMultiCallable[Any, Any]
    AioUnaryStreamMultiCallable = grpc.aio.UnaryStreamMultiCallable[Any, Any]
    AioUnaryUnaryCall = grpc.aio.UnaryUnaryCall[Any, Any]
    AioUnaryStreamCall = grpc.aio.UnaryStreamCall[Any, Any]
else:
    UnaryUnaryMultiCallable = grpc.UnaryUnaryMultiCallable
    UnaryStreamMultiCallable = grpc.UnaryStreamMultiCallable
    AioUnaryUnaryMultiCallable = grpc.aio.UnaryUnaryMultiCallable
    AioUnaryStreamMultiCallable = grpc.aio.UnaryStreamMultiCallable
    AioUnaryUnaryCall = grpc.aio.UnaryUnaryCall
    AioUnaryStreamCall = grpc.aio.UnaryStreamCall

    class CallFuture(grpc.Call, grpc.Future):
        pass

    class CallIterator(grpc.Call):
        pass
