"""What every SDK's loop here gives its model: one tool, which runs a command."""

from __future__ import annotations

import asyncio
import os
import sys

BASE = os.environ["OPENAI_BASE_URL"]
PROMPT = sys.argv[1]
LIMIT = 100_000


async def run_command(command: str) -> str:
    """Run a shell command.

    Args:
        command: The command.
    """
    process = await asyncio.create_subprocess_exec(
        *("/bin/bash", "-c", command), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    return out.decode()
