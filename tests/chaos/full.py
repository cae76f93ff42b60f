"""A program in whose project the settings lie on a full disk; says in JSON how it was.

``python full.py PROJECT``, in a mount namespace of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from crow import build
from crow.core.events import Event, Notice
from crow.core.ports import NullClient, PermissionRequest
from crow.project.trust import trust
from crow.testing import ScriptedModel, call

SETTINGS = {"permissions": {"deny": ["Bash(rm *)"]}}


class Client(NullClient):
    def __init__(self) -> None:
        self.notices: list[str] = []

    async def update(self, session_id: str, event: Event) -> None:
        if isinstance(event, Notice):
            self.notices.append(event.text)

    async def permission(self, session_id: str, request: PermissionRequest) -> str:
        return "allow_always"


def fill(path: Path) -> None:
    """Leave no byte of a disk."""
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 512)
        except OSError:
            os.fsync(file.fileno())


def settle(project: Path) -> Path:
    """A trusted project's folder of settings, on a disk that is full with them."""
    folder = project / ".claude"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", folder], check=True)
    (folder / "settings.local.json").write_text(json.dumps(SETTINGS))
    trust(project)
    fill(folder / "filler")
    return folder


async def main(project: Path) -> dict[str, object]:
    """Let a user allow something for good where that cannot be written down."""
    folder = settle(project)
    model, client = ScriptedModel(call("Bash", command="touch made"), "done"), Client()
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
