"""What the whole agent says before its user does: it is paid for in every request.

The tokens are counted by `benchmarks/bench_prompt_size.py`, with real tokenizers. Here are the
pieces that any of them would cut a text into, which needs no vocabulary: 6 % fewer than SmolLM2's.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from crow.testing import BuildAgent

PIECE = re.compile(r"[A-Za-z]+|\d|[^\sA-Za-z\d]{1,3}")
PIECES = 1223
ROOM = 1.05


async def test_the_prompt_grows_by_no_more_than_a_twentieth(
    build_agent: BuildAgent, tmp_path: Path
):
    async with build_agent("Hello.", cwd=tmp_path) as agent:
        await agent.run("Hi", cwd=tmp_path)
    model: Any = agent.llm
    system, tools = model.asked[0]["messages"][0], model.asked[0]["tools"]
    text = json.dumps([system, *tools], separators=(",", ":")).replace(str(tmp_path), "/project")
    pieces = len(PIECE.findall(text))
    assert PIECES / ROOM < pieces < PIECES * ROOM, (
        f"system prompt and tools have {pieces} pieces, not about {PIECES}: run "
        "benchmarks/bench_prompt_size.py, and if the tokens are worth it write the number down here"
    )
