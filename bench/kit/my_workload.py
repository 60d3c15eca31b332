#!/usr/bin/env python3
"""A workload of one's own against tine, in Python: copy this file and change `prepare` and `once`.

    bench/kit/my_workload.py ipc:///run/user/1000/tine/tine.sock [FORKS] [MESSAGES] [BYTES]

It makes a chain of forks, reads the whole history at its end over and over, and prints a line of
JSON with the latencies. The sessions that it makes stay in the store, in the project directory
"/bench/kit".
"""

import json
import sys
import time

import tine
from tine.v1 import records_pb2, store_pb2
from tine.v1.store_pb2_grpc import StoreServiceStub

WARM_UP_CALLS = 50
CALLS = 1000
PAGE_BYTES = 16 << 20


def prepare(store, forks, messages, size):
    """What is there before the clock runs. Returns the session at the end of the chain."""
    created = store.CreateSession(
        store_pb2.CreateSessionRequest(
            session=store_pb2.NewSession(
                project_dir="/bench/kit",
                model=records_pb2.ModelRef(provider="anthropic", name="model-1"),
            )
        )
    )
    session_id = created.session.id
    part = records_pb2.Part(text=records_pb2.Text(text="x" * size))
    message = records_pb2.NewMessage(role=records_pb2.ROLE_USER, parts=[part])
    for fork in range(forks + 1):
        for _ in range(messages):
            store.AppendMessage(
                store_pb2.AppendMessageRequest(session_id=session_id, message=message)
            )
        if fork < forks:
            forked = store.ForkSession(
                store_pb2.ForkSessionRequest(session_id=session_id, at_head=True)
            )
            session_id = forked.session.id
    return session_id


def once(store, session_id):
    """What is timed: the whole history, page by page. Returns how many messages it has."""
    count = 0
    cursor = ""
    while True:
        page = store.MessagesForSession(
            store_pb2.MessagesForSessionRequest(
                session_id=session_id, page_bytes=PAGE_BYTES, cursor=cursor
            )
        )
        count += len(page.messages)
        cursor = page.next_cursor
        if not cursor:
            return count


def measure(store, session_id, expected):
    """The samples in nanoseconds, sorted."""
    samples = []
    for i in range(WARM_UP_CALLS + CALLS):
        begin = time.perf_counter_ns()
        count = once(store, session_id)
        end = time.perf_counter_ns()
        if count != expected:  # a figure of half the work is none
            sys.exit(f"a history of {count} messages, not {expected}")
        if i >= WARM_UP_CALLS:
            samples.append(end - begin)
    return sorted(samples)


def main():
    url = sys.argv[1] if len(sys.argv) > 1 else None
    numbers = [int(argument) for argument in sys.argv[2:]] + [8, 25, 1024][len(sys.argv[2:]) :]
    forks, messages, size = numbers[:3]
    with tine.connect(url) as channel:
        store = StoreServiceStub(channel)
        session_id = prepare(store, forks, messages, size)
        samples = measure(store, session_id, (forks + 1) * messages)
    print(
        json.dumps(
            {
                "forks": forks,
                "messages": messages,
                "bytes": size,
                "count": CALLS,
                "median_us": samples[CALLS // 2] / 1e3,
                "p99_us": samples[CALLS * 99 // 100] / 1e3,
                "p999_us": samples[CALLS * 999 // 1000] / 1e3,
            }
        )
    )


main()
