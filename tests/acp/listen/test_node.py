"""The server and the official TypeScript library's clients."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[1] / "node/remote.mjs"


async def two_clients(node: str, url: str, cwd: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What two clients, one after the other, are told, asked and answered."""
    process = await asyncio.create_subprocess_exec(
        *(node, str(SCRIPT), url, str(cwd)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    told: dict[str, Any] = json.loads(out)
    return told["first"], told["later"]


@pytest.mark.node
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_the_typescript_library_connects(
    node: str, server: Any, scheme: str, tmp_path: Path
) -> None:
    first, later = await two_clients(node, server.url(scheme), tmp_path)
    assert (first["stopReason"], first["cards"], first["asked"]) == ("end_turn", 1, 1)
    assert (tmp_path / "test.txt").exists()
    assert (later["stopReason"], later["cards"], later["asked"]) == ("end_turn", 2, 0)
    assert later["text"].startswith(first["text"])
