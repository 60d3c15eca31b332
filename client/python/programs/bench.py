"""Measures GetSession with this client and with grpcio, in turns. Prints one line of JSON.

The latency of single calls is the median over interleaved turns of 25 calls. The throughput is
measured with 64 calls in flight, in alternating turns: 64 futures, or 64 tasks with --aio.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from statistics import median
from time import perf_counter
from typing import Any

import grpc
import grpc.aio
from tine.v1.store_pb2 import GetSessionRequest
from tine.v1.store_pb2_grpc import StoreServiceStub

import tine

TURN, TURNS_64, IN_FLIGHT = 25, 6, 64


def measure(stubs: dict[str, Any], request: GetSessionRequest, calls: int) -> dict[str, float]:
    for stub in stubs.values():
        one_by_one(stub, request, 200)
        in_flight(stub, request, 500)
    taken: dict[str, list[float]] = {name: [] for name in stubs}
    rates: dict[str, list[float]] = {name: [] for name in stubs}
    for _ in range(max(calls // TURN, 1)):
        for name, stub in stubs.items():
            taken[name] += one_by_one(stub, request, TURN)
    for _ in range(TURNS_64):
        for name, stub in stubs.items():
            rates[name].append(in_flight(stub, request, max(calls // TURNS_64, IN_FLIGHT)))
    return summary(taken, rates)


def one_by_one(stub: Any, request: GetSessionRequest, count: int) -> list[float]:
    taken = []
    for _ in range(count):
        begun = perf_counter()
        stub.GetSession(request)
        taken.append(perf_counter() - begun)
    return taken


def in_flight(stub: Any, request: GetSessionRequest, count: int) -> float:
    """Returns the calls per second with 64 in flight."""
    begun = perf_counter()
    futures = [stub.GetSession.future(request) for _ in range(IN_FLIGHT)]
    for i in range(count):
        futures[i % IN_FLIGHT].result()
        futures[i % IN_FLIGHT] = stub.GetSession.future(request)
    for future in futures:
        future.result()
    return (count + IN_FLIGHT) / (perf_counter() - begun)


async def measure_aio(
    stubs: dict[str, Any], request: GetSessionRequest, calls: int
) -> dict[str, float]:
    async def many(stub: Any) -> None:
        for _ in range(each):
            await stub.GetSession(request)

    each = max(calls // TURNS_64 // IN_FLIGHT, 4)
    for stub in stubs.values():
        await timed_aio(stub, request, 200)
        await asyncio.gather(*(many(stub) for _ in range(IN_FLIGHT)))
    taken: dict[str, list[float]] = {name: [] for name in stubs}
    rates: dict[str, list[float]] = {name: [] for name in stubs}
    for _ in range(max(calls // TURN, 1)):
        for name, stub in stubs.items():
            taken[name] += await timed_aio(stub, request, TURN)
    for _ in range(TURNS_64):
        for name, stub in stubs.items():
            begun = perf_counter()
            await asyncio.gather(*(many(stub) for _ in range(IN_FLIGHT)))
            rates[name].append(IN_FLIGHT * each / (perf_counter() - begun))
    return summary(taken, rates)


async def timed_aio(stub: Any, request: GetSessionRequest, count: int) -> list[float]:
    taken = []
    for _ in range(count):
        begun = perf_counter()
        await stub.GetSession(request)
        taken.append(perf_counter() - begun)
    return taken


def summary(taken: dict[str, list[float]], rates: dict[str, list[float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name in taken:
        found[f"{name}_p50_us"] = round(median(taken[name]) * 1e6, 1)
    for name in rates:
        found[f"{name}_rps_64"] = round(median(rates[name]))
    return found


async def run_aio(given: argparse.Namespace) -> dict[str, float]:
    grpc_channel = grpc.aio.insecure_channel(given.grpc)
    async with tine.aio.connect(given.tine) as channel, grpc_channel:
        stubs: dict[str, Any] = {
            "tine": StoreServiceStub(channel),
            "grpc": StoreServiceStub(grpc_channel),
        }
        return await measure_aio(stubs, GetSessionRequest(session_id=given.session), given.calls)


def run_blocking(given: argparse.Namespace) -> dict[str, float]:
    with tine.connect(given.tine) as channel, grpc.insecure_channel(given.grpc) as grpc_channel:
        stubs = {"tine": StoreServiceStub(channel), "grpc": StoreServiceStub(grpc_channel)}
        return measure(stubs, GetSessionRequest(session_id=given.session), given.calls)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--aio", action="store_true")
    parser.add_argument("--tine", required=True)
    parser.add_argument("--grpc", required=True)
    parser.add_argument("--session", required=True)
    parser.add_argument("--calls", type=int, default=5000)
    given = parser.parse_args()
    figures = asyncio.run(run_aio(given)) if given.aio else run_blocking(given)
    print(json.dumps({"language": "python-aio" if given.aio else "python", **figures}))


if __name__ == "__main__":
    main()
