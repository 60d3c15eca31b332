"""One turn of a small agent: a question, tools in parallel, an answer with its cost, and a fork.

python examples/agent/asynchronous.py [URL]
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Optional

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

if TYPE_CHECKING:
    from tine.v1.store_pb2_grpc import StoreServiceAsyncStub

MODEL = ModelRef(provider="anthropic", name="claude-sonnet-4")
TOOLS = {"ls": "README.md src tests", "wc": "1284 lines"}


async def main(url: Optional[str] = None) -> None:
    async with tine.aio.connect(url, retry=10.0, start=url is None) as channel:
        # For type checkers, the stub of an asyncio channel has another type.
        store: StoreServiceAsyncStub = StoreServiceStub(channel)  # type: ignore[assignment]
        session_id = await turn(store)
        at_head = ForkSessionRequest(session_id=session_id, at_head=True)
        fork = (await store.ForkSession(at_head)).session
        await ask(store, fork.id, "And without the tests?")
        context = await store.BuildContext(BuildContextRequest(session_id=fork.id))
        print(f"the fork has {len(context.messages)} messages, its parent one less")


async def turn(store: StoreServiceAsyncStub) -> str:
    """Runs a turn of a subagent. Its cost is added to its parent, too."""
    project = NewSession(project_dir="/work/plan", model=MODEL)
    parent = (await store.CreateSession(CreateSessionRequest(session=project))).session
    project.kind = SESSION_KIND_SUBAGENT
    project.parent_id = parent.id
    session = (await store.CreateSession(CreateSessionRequest(session=project))).session

    events = store.WatchEvents(WatchEventsRequest(session_id=session.id), timeout=60)
    await events.wait_for_connection()
    await ask(store, session.id, "How large is the project?")
    uses = [Part(tool_use=ToolUse(id=name, name=name, input_json="{}")) for name in TOOLS]
    await append(store, session.id, NewMessage(role=ROLE_ASSISTANT, parts=uses))
    # Each tool stores its own result.
    await asyncio.gather(*(run_tool(store, session.id, name) for name in TOOLS))
    answer = NewMessage(
        role=ROLE_ASSISTANT,
        model=MODEL,
        parts=[Part(text=Text(text="It has 1284 lines."))],
        usage=Usage(input_tokens=1200, output_tokens=40, cost_nano_usd=4_200_000),
    )
    receipt = (await append(store, session.id, answer, propagate_usage=True)).receipt
    for update in receipt.totals:
        print(f"{update.session_id} has cost {update.totals.cost_nano_usd / 1e9:.4f} USD")
    async for response in events:
        print(f"event {response.event.type}")
        if response.event.message_id == receipt.id:
            events.cancel()
            break
    return session.id


async def ask(store: StoreServiceAsyncStub, session_id: str, text: str) -> None:
    message = NewMessage(role=ROLE_USER, parts=[Part(text=Text(text=text))])
    await append(store, session_id, message)


async def run_tool(store: StoreServiceAsyncStub, session_id: str, name: str) -> None:
    result = ToolResult(tool_use_id=name, tool_name=name, content=TOOLS[name])
    await append(store, session_id, NewMessage(role=ROLE_TOOL, parts=[Part(tool_result=result)]))


async def append(
    store: StoreServiceAsyncStub,
    session_id: str,
    message: NewMessage,
    propagate_usage: bool = False,
) -> AppendMessageResponse:
    request = AppendMessageRequest(
        session_id=session_id, message=message, propagate_usage=propagate_usage
    )
    return await store.AppendMessage(request, timeout=10)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:2]))
