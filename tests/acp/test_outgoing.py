"""What is said is typed as the official schema has it, both ways, and the type checker looks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.acp import write_types

WRONG = """
from crow.acp.v2.outgoing import ResumeSessionResponse, SessionUpdate
from crow.acp.words import Update

misspelt: SessionUpdate = {"sessionUpdate": "notice", "severity": "warning", "titel": "x"}
missing: Update = {"sessionUpdate": "agent_message_chunk", "messageId": "m"}
unheard: Update = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "finished"}
answered: ResumeSessionResponse = {"configOption": []}
right: Update = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"}
"""


@pytest.mark.parametrize("path", write_types.WANTED, ids=str)
def test_the_types_are_those_of_the_official_schema(path: Path) -> None:
    if not write_types.SDK.is_dir():
        pytest.skip("the official schema is not installed: make test ARGS='-m node'")
    assert path.read_text("utf-8") == write_types.source(path), (
        "run .venv/bin/python -m tests.acp.write_types"
    )


@pytest.mark.slow
def test_a_wrong_field_is_found_before_it_is_sent(tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text(WRONG)
    checker = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(file)]
    checked = subprocess.run(checker, capture_output=True, text=True, cwd=tmp_path)
    found = [line for line in checked.stdout.splitlines() if " - error: " in line]
    assert [int(line.split("wrong.py:")[1].split(":")[0]) for line in found] == [5, 6, 7, 8]


def test_nothing_of_it_is_there_at_run_time() -> None:
    names = "crow.acp.server crow.acp.v2.version crow.acp.v2.routes crow.acp.replay crow.acp.forms"
    code = f"import sys, {', '.join(names.split())}; print([n for n in sys.modules if 'outgoing' in n])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
