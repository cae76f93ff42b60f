"""A client's trace context: read from ``_meta``, found by hooks, passed on to MCP servers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from crow import Agent
from crow.acp.trace_context import trace_context
from crow.extensions import McpHook
from crow.testing import FakeEditor, ScriptedModel, call

SERVER = Path(__file__).parents[1] / "extensions/mcp/servers/raw.py"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    "meta, read",
    [
        (None, {}),
        ({"traceparent": 7}, {}),
        ({"traceparent": "nonsense"}, {}),
        ({"traceparent": f"00-{'0' * 32}-b7ad6b7169203331-01"}, {}),
        ({"tracestate": "a=1"}, {}),
        ({"traceparent": PARENT, "tracestate": "a=1", "baggage": 7, "x": "y"}, ["tracestate"]),
    ],
)
def test_only_what_makes_sense_is_read(meta: Any, read: Any) -> None:
    found = trace_context({"_meta": meta})
    assert list(found) == (["traceparent", *read] if read else [])


async def test_hooks_and_servers_get_the_trace_context_of_a_prompt(tmp_path: Path) -> None:
    seen: list[Any] = []

    def before_run(ctx: Any) -> None:
        seen.append(ctx.session.cache.get("trace_context"))

    log = tmp_path / "log"
    args = ["-SE", str(SERVER), json.dumps({"tools": ["echo"]})]
    server = {"command": sys.executable, "args": args, "env": {"TRACE": str(log)}}
    model = ScriptedModel(call("mcp__raw__echo"), "Done.")
    hooks = [McpHook({"raw": server}, wait=30), before_run]
    editor = FakeEditor()
    async with editor.connected(Agent(llm=model, hooks=hooks)):
        session = await editor.new_session(tmp_path)
        said = [{"type": "text", "text": "Go"}]
        params = {"sessionId": session, "prompt": said, "_meta": {"traceparent": PARENT}}
        await editor.wire.request("session/prompt", params)
    assert seen == [{"traceparent": PARENT}]
    assert f"traceparent {PARENT}" in log.read_text().splitlines()
