"""The server and the official TypeScript library's clients."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[1] / "node/remote.mjs"


@pytest.mark.node
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_the_typescript_library_connects(
    node: str, server: Any, scheme: str, tmp_path: Path
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(node, str(SCRIPT), server.url(scheme), str(tmp_path)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    told: dict[str, Any] = json.loads(out)
    first, later = told["first"], told["later"]
    assert (first["stopReason"], first["cards"], first["asked"]) == ("end_turn", 1, 1)
    assert (tmp_path / "test.txt").exists()
    assert (later["stopReason"], later["cards"], later["asked"]) == ("end_turn", 2, 0)
    assert later["text"].startswith(first["text"])
