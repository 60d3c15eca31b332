"""Encodes the envelope of requests and decodes that of replies."""

from __future__ import annotations

from typing import Union

from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import (  # type: ignore[import-not-found]
    UnknownFieldSet,
)

from tine import _status
from tine._sp import ID_BYTES, Payload
from tine._status import Failure
from tine.v1 import rpc_pb2

REQUEST_BYTES_MAX = 16 * 1024 * 1024

_METHOD, _OPERATION_ID, _TRACEPARENT, _TOKEN, _BODY = 0x0A, 0x12, 0x22, 0x2A, 0x7A
_TIMEOUT = 0x18
_GROUP = 3

#: The encoded field `sync`: answer after the write was flushed to disk.
SYNC = b"\x30\x01"

Text = Union[str, bytes]


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(tag: int, text: Text) -> bytes:
    """Encodes a field of bytes; returns nothing if the text is empty."""
    if not text:
        return b""
    data = text.encode() if isinstance(text, str) else text
    return bytes((tag,)) + varint(len(data)) + data


def method_field(path: str) -> bytes:
    return field(_METHOD, path)


def token_field(token: Text) -> bytes:
    return field(_TOKEN, token)


def request_head(
    method: bytes,
    operation_id: Text,
    timeout_ms: int,
    traceparent: Text,
    token: bytes,
    body_bytes: int,
) -> bytes:
    """Encodes a Request without the content of its body, which is the last field.

    `method` and `token` are encoded fields; SYNC may follow the token.
    """
    head = method
    if operation_id:
        head += field(_OPERATION_ID, operation_id)
    if timeout_ms:
        head += bytes((_TIMEOUT,)) + varint(timeout_ms)
    if traceparent:
        head += field(_TRACEPARENT, traceparent)
    if body_bytes == 0:
        return head + token
    if body_bytes < 0x80:
        return head + token + bytes((_BODY, body_bytes))
    return head + token + bytes((_BODY,)) + varint(body_bytes)


def has_group(message: Message) -> bool:
    """Whether it holds a group. protobuf accepts groups, tine's wire format does not."""
    return any(unknown.wire_type == _GROUP for unknown in UnknownFieldSet(message))


def response_body(payload: Payload, begin: int = ID_BYTES) -> bytes:
    """Returns the body of the Response that begins there. Raises Failure if it is an error."""
    size = len(payload)
    # Fast path: nearly all replies consist of the field `body` alone.
    if size > begin + 1 and payload[begin] == _BODY:
        at, length, shift = begin + 1, 0, 0
        while at < size and shift < 28:
            byte = payload[at]
            at += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                if at + length == size:
                    return bytes(memoryview(payload)[at:])
                break
    return _response_parse(bytes(payload[begin:]))


def _response_parse(data: bytes) -> bytes:
    if not data:  # not even a success is encoded as nothing
        raise _status.undecodable()
    try:
        response = rpc_pb2.Response.FromString(data)
    except DecodeError:
        raise _status.undecodable() from None
    said = response.status
    if has_group(response) or has_group(said):
        raise _status.undecodable()
    if said.code != 0:
        raise Failure(said.code, said.reason, said.message)
    return response.body
