"""An extension that plays a model: it changes one line of ``large.txt``, which is 4 MB."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from crow.core.ports.llm import Completion
from crow.core.tools import Call

NAME = "large.txt"
LINE = 100_000
SIZE = 4_000_000
STEPS: list[tuple[str, dict[str, Any]]] = [
    ("Read", {"limit": 5}),
    ("Edit", {"old_string": f"line {LINE:>8} ", "new_string": "another line "}),
]


def make(folder: Path) -> Path:
    """The file, of lines that say their number."""
    path = folder / NAME
    row = "line {:>8} of a large file\n"
    path.write_text("".join(row.format(n) for n in range(1, SIZE // len(row.format(1)) + 1)))
    return path


async def around_llm_request(ctx: Any) -> Completion:
    """The next step; the last says that it is done."""
    done = sum(message["role"] == "tool" for message in ctx.messages)
    if done >= len(STEPS):
        return Completion("Done.")
    name, args = STEPS[done]
    args = {"file_path": str(Path(ctx.cwd, NAME)), **args}
    return Completion("", (Call(f"call-{done}", name, args, json.dumps(args)),))
