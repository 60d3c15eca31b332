"""Runs the steps of a scenario through the typed stubs and prints one line per step.

tests/wire/transcripts compares the output with that of the other clients.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any, Optional

import grpc
import grpc.aio
from google.protobuf import json_format
from google.protobuf.message import Message
from tine.v1 import store_pb2
from tine.v1.store_pb2_grpc import StoreServiceStub

import tine

Json = dict[str, Any]
_STORE = store_pb2.DESCRIPTOR.services_by_name["StoreService"]
_NAME = re.compile(r"\$\{([^}]*)\}")
_WATCH_S_MAX = 20.0


class Step:
    """One step, with its variables expanded."""

    def __init__(self, step: Json, saved: dict[str, str], name: str) -> None:
        self.name = name
        self.call: str = step["call"]
        self.is_of_peer = step.get("via") == "peer"
        self.save: dict[str, str] = step.get("save", {})
        self.events: int = step.get("watch", {}).get("events", 0)
        timeout_ms = step.get("timeout_ms")
        self.timeout: Optional[float] = None if timeout_ms is None else timeout_ms / 1000
        cancel_ms = step.get("cancel_ms")
        self.cancel_after: Optional[float] = None if cancel_ms is None else cancel_ms / 1000
        self.metadata = [
            (key, _expand(step[field], saved))
            for key, field in (
                ("tine-operation-id", "operation_id"),
                ("traceparent", "traceparent"),
                ("tine-token", "token"),
            )
            if field in step
        ]
        request = _expand(step.get("request", {}), saved)
        generate = step.get("generate")
        if generate:
            _put(request, generate["field"].split("."), generate["byte"] * generate["count"])
        made = getattr(store_pb2, _STORE.methods_by_name[self.call].input_type.name)()
        self.request: Message = json_format.ParseDict(request, made)

    def line(self, code: int, reason: str, message: str, reply: Optional[Json]) -> str:
        return json.dumps(
            {
                "step": self.name,
                "call": self.call,
                "code": code,
                "reason": reason,
                "message": message,
                "reply": reply,
            }
        )

    def succeeded(self, reply: Json, saved: dict[str, str]) -> str:
        for name, path in self.save.items():
            saved[name] = _get(reply, path.split("."))
        return self.line(0, "", "", reply)

    def failed(self, error: grpc.RpcError) -> str:
        code: int = error.code().value[0]
        return self.line(code, tine.reason(error), error.details() or "", None)

    def cancelled(self) -> str:
        """grpc reports a cancellation by an error without a status."""
        return self.line(1, "", "the call was cancelled", None)


def _expand(value: Any, saved: dict[str, str]) -> Any:
    if isinstance(value, str):
        return _NAME.sub(lambda found: saved[found[1]], value)
    if isinstance(value, dict):
        return {key: _expand(inner, saved) for key, inner in value.items()}
    if isinstance(value, list):
        return [_expand(inner, saved) for inner in value]
    return value


def _key(place: Any, name: str) -> Any:
    return int(name) if isinstance(place, list) else name


def _put(place: Any, path: list[str], value: str) -> None:
    for name in path[:-1]:
        place = place[_key(place, name)]
    place[_key(place, path[-1])] = value


def _get(place: Any, path: list[str]) -> str:
    for name in path:
        place = place[_key(place, name)]
    return str(place)


def _json(message: Message) -> Json:
    found: Json = json_format.MessageToDict(message)
    return found


def steps_of(path: str, saved: dict[str, str]) -> Iterator[Step]:
    """Yields each step after the previous one has saved its variables."""
    with open(path, encoding="utf-8") as file:
        scenario = json.load(file)
    for step in scenario:
        repeat = step.get("repeat")
        for i in range(repeat["count"] if repeat else 1):
            if repeat:
                saved[repeat["name"]] = str(i)
            yield Step(step, saved, f"{step['id']}/{i}" if repeat else step["id"])


def run_blocking(url: str, peer_url: str, path: str) -> None:
    saved: dict[str, str] = {}
    with tine.connect(url) as channel, tine.connect(peer_url) as peer_channel:
        store, peer = StoreServiceStub(channel), StoreServiceStub(peer_channel)
        for step in steps_of(path, saved):
            try:
                reply = _call(peer if step.is_of_peer else store, step)
                line = step.succeeded(reply, saved)
            except grpc.FutureCancelledError:
                line = step.cancelled()
            except grpc.RpcError as error:
                line = step.failed(error)
            print(line, flush=True)


def _call(stub: Any, step: Step) -> Json:
    method = getattr(stub, step.call)
    if step.events:
        stream = method(step.request, timeout=_WATCH_S_MAX, metadata=step.metadata)
        try:
            return {"events": [_json(next(stream).event) for _ in range(step.events)]}
        finally:
            stream.cancel()
    if step.cancel_after is None:
        return _json(method(step.request, timeout=step.timeout, metadata=step.metadata))
    future = method.future(step.request, timeout=step.timeout, metadata=step.metadata)
    try:
        return _json(future.result(timeout=step.cancel_after))
    except grpc.FutureTimeoutError:
        future.cancel()
        return _json(future.result())


async def run_aio(url: str, peer_url: str, path: str) -> None:
    saved: dict[str, str] = {}
    async with tine.aio.connect(url) as channel, tine.aio.connect(peer_url) as peer_channel:
        store, peer = StoreServiceStub(channel), StoreServiceStub(peer_channel)
        for step in steps_of(path, saved):
            try:
                reply = await _call_aio(peer if step.is_of_peer else store, step)
                line = step.succeeded(reply, saved)
            except asyncio.CancelledError:
                line = step.cancelled()
            except grpc.RpcError as error:
                line = step.failed(error)
            print(line, flush=True)


async def _call_aio(stub: Any, step: Step) -> Json:
    method = getattr(stub, step.call)
    if step.events:
        stream = method(step.request, timeout=_WATCH_S_MAX, metadata=step.metadata)
        try:
            events = [_json((await stream.read()).event) for _ in range(step.events)]
            return {"events": events}
        finally:
            stream.cancel()
    call = method(step.request, timeout=step.timeout, metadata=step.metadata)
    if step.cancel_after is not None:
        asyncio.get_running_loop().call_later(step.cancel_after, call.cancel)
    return _json(await call)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--aio", action="store_true")
    parser.add_argument("--url", required=True)
    parser.add_argument("--peer", required=True)
    parser.add_argument("scenario")
    given = parser.parse_args()
    if given.aio:
        asyncio.run(run_aio(given.url, given.peer, given.scenario))
    else:
        run_blocking(given.url, given.peer, given.scenario)


if __name__ == "__main__":
    main()
