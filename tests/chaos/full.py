"""A program in whose project the settings lie on a full disk; says in JSON how it was.

``python -m tests.chaos.full PROJECT``, in a mount namespace of its own.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from tests.extensions.persistence.scarce import Client, fill, mount

from crow import build
from crow.core.ports.client import PermissionRequest
from crow.project.trust import trust
from crow.testing import ScriptedModel, call

SETTINGS = {"permissions": {"deny": ["Bash(rm *)"]}}


class Allowing(Client):
    """A user who allows everything for good."""

    async def permission(self, session_id: str, request: PermissionRequest) -> str:
        return "allow_always"


def settle(project: Path) -> Path:
    """A trusted project's folder of settings, on a disk that is full with them."""
    folder = project / ".claude"
    folder.mkdir()
    mount("-t", "tmpfs", "-o", "size=16k", "tmpfs", folder)
    (folder / "settings.local.json").write_text(json.dumps(SETTINGS))
    trust(project)
    fill(folder / "filler")
    return folder


async def main(project: Path) -> dict[str, object]:
    """Let a user allow something for good where that cannot be written down."""
    folder = settle(project)
    model, client = ScriptedModel(call("Bash", command="touch made"), "done"), Allowing()
    async with build(model=model, cwd=project, env={}) as agent:
        session = await agent.new_session(project, client=client)
        reply = await agent.prompt(session, "Go")
    return {
        "made": (project / "made").exists(),
        "stop": reply.stop_reason,
        "notices": client.notices,
        "settings": json.loads((folder / "settings.local.json").read_text()),
        "files": sorted(path.name for path in folder.iterdir()),
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(Path(sys.argv[1])))))
