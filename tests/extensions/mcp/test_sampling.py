"""What servers of the older sort want of a session: its model, its folders, and to be heard."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.extensions.mcp.conftest import Open, Table, Watcher

from crow.testing import call

Raw = Callable[..., Table]
WISH: dict[str, Any] = {
    "messages": [
        {"role": "user", "content": {"type": "text", "text": "Say \x1b[1mhi\x1b[0m"}},
        {"role": "assistant", "content": {"type": "text", "text": "Hi."}},
        {"role": "user", "content": {"type": "image", "data": "QUJD", "mimeType": "image/png"}},
    ],
    "systemPrompt": "Be short.",
    "maxTokens": 50,
    "temperature": 0.5,
    "stopSequences": ["END"],
}


def sampling(raw: Raw, **more: Any) -> Table:
    """A server whose tool asks the model."""
    return {"s": raw(call="ask", ask_method="sampling/createMessage", ask=WISH, **more)}


async def test_a_server_asks_the_model_when_the_user_allows_it(opened: Open, raw: Raw) -> None:
    client, script = Watcher("Allow"), (call("mcp__s__echo"), "From the model.", "Done.")
    async with opened(sampling(raw), *script, client=client) as it:
        assert await it.prompt() == "Done."
        heard = json.loads(it.results[0].splitlines()[1])
        assert heard["content"] == {"type": "text", "text": "From the model."}
        assert heard["role"] == "assistant"
        assert heard["stopReason"] == "endTurn"
        asked = it.model.asked[1]
        assert asked["tools"] == []
        assert [m["role"] for m in asked["messages"]] == ["system", "user", "assistant", "user"]
        assert asked["messages"][0]["content"] == "Be short."
        assert "image left out" in asked["messages"][3]["content"]
        assert asked["params"] == {"max_tokens": 50, "temperature": 0.5, "stop": ["END"]}
        [question] = client.questions
        assert '"s" wants to ask the model' in question.text
        assert "user: Say hi" in question.detail


async def test_nobody_there_or_a_no_is_a_rejection(opened: Open, raw: Raw) -> None:
    for client in (Watcher(), Watcher("Deny")):
        script = (call("mcp__s__echo"), "Done.")
        async with opened(sampling(raw), *script, client=client) as it:
            assert await it.prompt() == "Done."
            heard = json.loads(it.results[0].splitlines()[1])
            assert heard["code"] == -1
            assert "rejected" in heard["message"]
            assert len(it.model.asked) == 2


async def test_who_allows_it_for_the_session_is_asked_once(opened: Open, raw: Raw) -> None:
    client = Watcher("Allow for this session")
    script = (call("mcp__s__echo"), "A.", call("mcp__s__echo"), "B.", "Done.")
    async with opened(sampling(raw), *script, client=client) as it:
        assert await it.prompt() == "Done."
        assert [json.loads(r.splitlines()[1])["content"]["text"] for r in it.results] == [
            "A.",
            "B.",
        ]
        assert len(client.questions) == 1


async def test_what_a_server_logs_is_kept_and_shown(opened: Open, raw: Raw, trace: Path) -> None:
    told = [
        {"level": "warning", "logger": "db", "data": "slow \x1b[1mquery"},
        {"level": "info", "data": {"rows": 3}},
    ]
    async with opened(
        {"s": raw(log=told)}, call("mcp__s__echo"), "Done.", log_level="notice"
    ) as it:
        await it.prompt()
        assert await it.prompt("/mcp log s") == 'warning: db: slow query\ninfo: {"rows": 3}'
        assert "no MCP server 'x'" in await it.prompt("/mcp log x")
    assert "level notice" in trace.read_text()


async def test_a_server_is_told_that_a_folder_came(
    opened: Open, raw: Raw, trace: Path, tmp_path: Path
) -> None:
    more = tmp_path / "more"
    more.mkdir()
    async with opened({"s": raw()}, "One.", "Two.") as it:
        await it.prompt()
        assert "roots/list_changed" not in trace.read_text()
        it.session.directories = (str(more),)
        await it.prompt()
    assert trace.read_text().count("asked notifications/roots/list_changed") == 1
