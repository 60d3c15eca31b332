"""One turn of a small agent: a question, tools in parallel, an answer with its cost, and a fork.

python examples/agent/blocking.py [URL]
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Optional

from tine.v1.records_pb2 import (
    ROLE_ASSISTANT,
    ROLE_TOOL,
    ROLE_USER,
    SESSION_KIND_SUBAGENT,
    ModelRef,
    NewMessage,
    Part,
    Text,
    ToolResult,
    ToolUse,
    Usage,
)
from tine.v1.store_pb2 import (
    AppendMessageRequest,
    AppendMessageResponse,
    BuildContextRequest,
    CreateSessionRequest,
    ForkSessionRequest,
    NewSession,
    WatchEventsRequest,
)
from tine.v1.store_pb2_grpc import StoreServiceStub

import tine

MODEL = ModelRef(provider="anthropic", name="claude-sonnet-4")
TOOLS = {"ls": "README.md src tests", "wc": "1284 lines"}


def main(url: Optional[str] = None) -> None:
    with tine.connect(url, retry=10.0, start=url is None) as channel:
        store = StoreServiceStub(channel)
        session_id = turn(store)
        fork = store.ForkSession(ForkSessionRequest(session_id=session_id, at_head=True)).session
        ask(store, fork.id, "And without the tests?")
        context = store.BuildContext(BuildContextRequest(session_id=fork.id))
        print(f"the fork has {len(context.messages)} messages, its parent one less")


def turn(store: StoreServiceStub) -> str:
    """Runs a turn of a subagent. Its cost is added to its parent, too."""
    project = NewSession(project_dir="/work/plan", model=MODEL)
    parent = store.CreateSession(CreateSessionRequest(session=project)).session
    project.kind = SESSION_KIND_SUBAGENT
    project.parent_id = parent.id
    session = store.CreateSession(CreateSessionRequest(session=project)).session

    events = store.WatchEvents(WatchEventsRequest(session_id=session.id), timeout=60)
    ask(store, session.id, "How large is the project?")
    uses = [Part(tool_use=ToolUse(id=name, name=name, input_json="{}")) for name in TOOLS]
    append(store, session.id, NewMessage(role=ROLE_ASSISTANT, parts=uses))
    with ThreadPoolExecutor() as pool:  # each tool stores its own result
        for _ in pool.map(lambda name: run_tool(store, session.id, name), TOOLS):
            continue
    answer = NewMessage(
        role=ROLE_ASSISTANT,
        model=MODEL,
        parts=[Part(text=Text(text="It has 1284 lines."))],
        usage=Usage(input_tokens=1200, output_tokens=40, cost_nano_usd=4_200_000),
    )
    receipt = append(store, session.id, answer, propagate_usage=True).receipt
    for update in receipt.totals:
        print(f"{update.session_id} has cost {update.totals.cost_nano_usd / 1e9:.4f} USD")
    for response in events:
        print(f"event {response.event.type}")
        if response.event.message_id == receipt.id:
            events.cancel()
            break
    return session.id


def ask(store: StoreServiceStub, session_id: str, text: str) -> None:
    append(store, session_id, NewMessage(role=ROLE_USER, parts=[Part(text=Text(text=text))]))


def run_tool(store: StoreServiceStub, session_id: str, name: str) -> None:
    result = ToolResult(tool_use_id=name, tool_name=name, content=TOOLS[name])
    append(store, session_id, NewMessage(role=ROLE_TOOL, parts=[Part(tool_result=result)]))


def append(
    store: StoreServiceStub, session_id: str, message: NewMessage, propagate_usage: bool = False
) -> AppendMessageResponse:
    request = AppendMessageRequest(
        session_id=session_id, message=message, propagate_usage=propagate_usage
    )
    return store.AppendMessage(request, timeout=10)


if __name__ == "__main__":
    main(*sys.argv[1:2])
