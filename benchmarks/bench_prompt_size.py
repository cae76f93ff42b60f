"""How many tokens the system prompt and the tools of the whole agent are, beside those of pi.

The request is what ``crow run`` sends from an empty home to a server on loopback; counted is its
compact JSON. pi's are those of its release 0.74.2, counted the same way. The limit is 1,300 tokens
of SmolLM2, whose vocabulary is small: it counts a fifth more than those of larger models.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from crow.testing import Endpoint
from crow.testing.endpoint import answer

LIMIT = 1300
PEER = (1339, 1194)
ROOT = Path(__file__).parents[1]
TOKENIZER = ROOT / ".real" / "bin" / "python"  # `make real` and `make bench` install it


async def requested() -> dict[str, Any]:
    """The first request of ``crow run``."""
    crow = Path(sys.executable).with_name("crow")
    with tempfile.TemporaryDirectory() as home:
        async with Endpoint() as endpoint:
            endpoint.play(answer("Hello."))
            env = {"PATH": os.environ["PATH"], "HOME": home, "CROW_MODEL": "m"}
            child = await asyncio.create_subprocess_exec(
                *(crow, "run", "Hi"),
                env={**env, "CROW_BASE_URL": endpoint.url},
                cwd=home,
                stdout=subprocess.DEVNULL,
            )
            assert await child.wait() == 0
            return endpoint.requests[0].body


def counted(texts: list[str]) -> list[list[int]]:
    """The tokens of each text: SmolLM2's and o200k's."""
    argv = [TOKENIZER, Path(__file__).with_name("count_tokens.py")]
    ended = subprocess.run(argv, input=json.dumps(texts).encode(), capture_output=True, check=True)
    return json.loads(ended.stdout)


def compact(value: object) -> str:
    """A value as it is sent."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def main() -> int:
    if not TOKENIZER.exists():
        print(f"there is no {TOKENIZER}: run `make bench`, which installs it")
        return 1
    body = asyncio.run(requested())
    system, tools = body["messages"][0], body["tools"]
    parts = {"system": system, **{each["function"]["name"]: each for each in tools}}
    *each, whole = counted([*map(compact, parts.values()), compact([system]) + compact(tools)])
    rows = {**dict(zip(parts, each, strict=True)), "all": whole, "pi 0.74": PEER}
    print("tokens           SmolLM2     o200k")
    for name, (small, large) in rows.items():
        print(f"{name:14}  {small:8,}  {large:8,}")
    if whole[0] > LIMIT:
        print(f"too many: at most {LIMIT:,} of SmolLM2's")
    return int(whole[0] > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
