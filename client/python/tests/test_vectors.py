"""The wire format, checked with the vectors that the C code prints."""

from __future__ import annotations

import json
from typing import Any, Union

import pytest
from tine.v1 import rpc_pb2

from tests.conftest import ROOT
from tine import _sp
from tine._call import Exchange, method_of
from tine._envelope import method_field, request_head, response_body, token_field
from tine._settings import settings_of
from tine._sp import FrameReader, Malformed
from tine._status import Failure
from tine._watch import message_read

with open(ROOT / "tests/wire/vectors.json", encoding="utf-8") as _file:
    VECTORS: dict[str, list[dict[str, Any]]] = json.load(_file)


def vectors(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "vector", [pytest.param(vector, id=vector["name"]) for vector in VECTORS[kind]]
    )


def payload_of(text: Any) -> bytes:
    if isinstance(text, dict):
        return bytes.fromhex(text["repeat"]) * int(text["count"])
    return bytes.fromhex(text)


@vectors("hellos")
def test_hello(vector: dict[str, Any]) -> None:
    expected = {"req": _sp.REP, "sub": _sp.PUB}[vector["client"]]
    if vector["ok"]:
        _sp.hello_check(bytes.fromhex(vector["hex"]), expected)
    else:
        with pytest.raises(Malformed):
            _sp.hello_check(bytes.fromhex(vector["hex"]), expected)


def read_frames(data: bytes, transport: str, step: int) -> tuple[list[bytes], str]:
    reader = FrameReader(is_tcp=transport == "tcp")
    payloads: list[bytes] = []
    while data and not reader.malformed:
        room = reader.room()
        piece = data[: min(step, len(room))]
        room[: len(piece)] = piece
        payloads += [bytes(payload) for payload in reader.took(len(piece))]
        data = data[len(piece) :]
    if reader.malformed:
        return payloads, "error"
    return payloads, "end" if reader.is_between_frames else "more"


@vectors("frames")
@pytest.mark.parametrize("step", [1, 7, 1 << 20], ids=["bytewise", "in-sevens", "at-once"])
def test_frame(vector: dict[str, Any], step: int) -> None:
    payloads, then = read_frames(payload_of(vector["hex"]), vector["transport"], step)
    assert payloads == [payload_of(text) for text in vector["payloads"]]
    assert then == vector["then"]


def test_memory_for_a_large_frame_is_taken_once() -> None:
    size = 4_000_000
    head = _sp.frame(1 << 31, b"", bytes(size - _sp.ID_BYTES), is_tcp=False)[:-size]
    reader = FrameReader()
    reader.room()[: len(head)] = head
    assert reader.took(len(head)) == []
    for left in range(size, 0, -1_000_000):
        assert len(reader.room()) == left
        payloads = reader.took(1_000_000)
    assert [len(payload) for payload in payloads] == [size]


def test_large_frames_among_small_ones() -> None:
    bodies = [b"a" * size for size in (0, 10, 65_530, 65_536, 3_000_000, 5, 70_000)]
    data = b"".join(_sp.frame(1 << 31, b"", body, is_tcp=False) for body in bodies)
    for step in (1000, 65_536, 1 << 30):
        payloads, then = read_frames(data, "ipc", step)
        assert then == "end"
        assert [payload[_sp.ID_BYTES :] for payload in payloads] == bodies


@vectors("requests")
def test_request(vector: dict[str, Any]) -> None:
    body = bytes.fromhex(vector["body"])
    head = request_head(
        method_field(vector["method"]),
        vector["operation_id"],
        vector["timeout_ms"],
        vector["traceparent"],
        token_field(vector["token"]),
        len(body),
    )
    assert (head + body).hex() == vector["hex"]


@pytest.mark.parametrize("value", ["1", b"1", "0"])
def test_a_call_may_ask_for_the_disk(value: Union[str, bytes]) -> None:
    settings = settings_of("tcp://127.0.0.1:1", "t", 0.0, start=False)
    method = method_of("/tine.v1.StoreService/RenameSession")
    call = Exchange(settings, method, b"body", metadata=[("tine-sync", value)])
    request = rpc_pb2.Request.FromString(call.head() + b"body")
    assert request.sync == (value != "0")
    assert (request.token, request.body) == ("t", b"body")


@vectors("responses")
def test_response(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    if vector["ok"] and vector["code"] == 0:
        assert response_body(data, 0) == bytes.fromhex(vector["body"])
        return
    with pytest.raises(Failure) as caught:
        response_body(data, 0)
    failure = caught.value
    assert failure.status_code.value[0] == vector["code"]
    if vector["ok"]:
        assert failure.message == vector["message"]
        assert failure.reason == vector["reason"]


@vectors("events")
def test_event(vector: dict[str, Any]) -> None:
    read = message_read(bytes.fromhex(vector["hex"]))
    if not vector["ok"]:
        assert read is None
        return
    assert read is not None
    topic, event = read
    assert topic == vector["topic"]
    assert event.sequence == vector["sequence"]
    assert event.type == vector["type"]
    assert event.session_id == vector["session_id"]
