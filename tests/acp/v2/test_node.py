"""``crow acp --protocol 2`` driven by the official TypeScript library, which knows the newest draft."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.npm import told_by

HERE = Path(__file__).parents[1] / "node"
CROW = str(Path(sys.executable).with_name("crow"))
FOREVER = "Run `echo begun; tail -f /dev/null`"

pytestmark = pytest.mark.node


@pytest.mark.slow
@pytest.mark.rule("version 2", "conformance with others' clients")
async def test_the_typescript_library_speaks_version_2(node: str, tmp_path: Path) -> None:
    command = (CROW, "acp", "--protocol", "2", "--allow", "Bash")
    told = await told_by(node, HERE / "draft.mjs", tmp_path, *command)
    first, later = told["first"], told["later"]
    assert first == {
        "sessionId": first["sessionId"],
        "protocol": 2,
        "options": ["mode", "model", "auto_compact"],
        "created": "end_turn",
        "message": f"{first['sessionId']}.0.0",
        "fileIsThere": True,
        "asked": ["tool_call"],
        "printed": "hello\nbegun\n",
        "cancelled": "end_turn",
        "statuses": 1,
        "kinds": first["kinds"],
        "status": 0,
    }
    assert {"user_message", "state_update", "tool_call_update", "terminal_update"} <= set(
        first["kinds"]
    )
    assert later == {
        "listed": [first["sessionId"]],
        "said": ["Create a file called test.txt", "Run `echo hello`", FOREVER],
        "message": first["message"],
        "states": ["idle"],
        "status": 0,
    }
