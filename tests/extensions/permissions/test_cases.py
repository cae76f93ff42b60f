"""A table of calls and what may be decided on them; a line for each in ``cases.jsonl``.

``want`` has the decisions that are right. ``input`` is a shell command where it is a text.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from crow.extensions.permissions import check_case
from crow.extensions.permissions.shell.shfmt import SecondOpinion

CASES = [
    json.loads(line) for line in Path(__file__).with_name("cases.jsonl").read_text().splitlines()
]
MORE = os.environ.get("CROW_PERMISSION_CASES")
SECOND = SecondOpinion()


def wrong(world: Any, wanted: str) -> list[str]:
    """The cases with this wish that are decided otherwise."""
    found: list[str] = []
    for case in CASES:
        if case["want"] != wanted:
            continue
        filled = world.fill(case)
        rules = {key: filled.get(key, ()) for key in ("allow", "ask", "deny")}
        args = filled["input"]
        args = {"command": args} if isinstance(args, str) else args
        permissions = world.permissions(**rules, mode=case.get("mode", "default"), second=SECOND)
        made = permissions.judge(case.get("tool", "Bash"), args, cwd=str(world.cwd))
        if made.decision not in wanted.split("|"):
            found.append(f"{json.dumps(case)}: {made.decision}, {made.reason}")
    return found


@pytest.mark.parametrize("wanted", sorted({case["want"] for case in CASES}))
def test_every_call_of_the_table_is_decided_rightly(world, wanted):
    assert wrong(world, wanted) == []


@pytest.mark.skipif(MORE is None, reason="CROW_PERMISSION_CASES names no further table")
def test_every_call_of_a_further_table_is_accepted():
    assert MORE is not None
    refused: list[str] = []
    for line in Path(MORE).read_text().splitlines():
        case = json.loads(line)
        made = check_case(case, SECOND)
        if made["decision"] not in case["accept"]:
            refused.append(f"{line}: {made}")
    assert refused == []
