"""Forms and pages in version 2: what a server asks is one request, of the call that it belongs to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.acp.test_forms import FILLED, ORDER, PAGE, Waiter


async def test_a_servers_form_is_one_request_with_all_of_its_fields(
    draft: Any, tmp_path: Path
) -> None:
    waiter, client = Waiter(tmp_path), draft(answer=FILLED)
    async with client.connected(waiter.serve()):
        await client.turn(await client.new_session(tmp_path), "Go")
        assert json.loads(waiter.heard[0]) == {"action": "accept", "content": FILLED}
        assert client.states() == ["running", "requires_action", "running", "idle"]
        (asked,) = client.asked
        assert set(asked["requested_schema"].properties) == set(ORDER["properties"])
        assert asked["tool_call_id"] == client.updates("tool_call_update")[0]["toolCallId"]


async def test_a_page_is_shown_as_one_and_its_end_is_told(draft: Any, tmp_path: Path) -> None:
    waiter, client = Waiter(tmp_path), draft(answer={})
    async with client.connected(waiter.serve(**PAGE)):
        await client.turn(await client.new_session(tmp_path), "Go")
        await client.wire.until(
            lambda: any(m.get("method") == "elicitation/complete" for m in client.wire.received)
        )
        assert json.loads(waiter.heard[0]) == {"action": "accept"}
    (asked,) = client.asked
    assert str(asked["url"]) == PAGE["url"]
