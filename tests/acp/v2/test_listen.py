"""Version 2 over HTTP and WebSocket: a turn that outlives its client is told of in states."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CROW = str(Path(sys.executable).with_name("crow"))
WAIT = "Run `sh wait.sh`"


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """The URL of a server for WebSockets, with its token."""
    env = {**os.environ, "HOME": str(tmp_path), "CROW_ACP_TOKEN": "for-a-test-and-nothing-else"}
    options = ("--protocol", "2", "--listen", "127.0.0.1:0", "--allow", "Bash")
    process = subprocess.Popen(
        [CROW, "acp", "--model", "rehearsal", *options],
        env=env,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    found = re.search(r"listening on http(://\S+)", process.stderr.readline())
    assert found
    yield f"ws{found[1].partition('?')[0]}?token=for-a-test-and-nothing-else"
    process.terminate()
    process.communicate(timeout=50)


@pytest.mark.slow
async def test_a_turn_that_outlives_its_client_is_told_of_in_states(
    draft: Any, url: str, tmp_path: Path
) -> None:
    (tmp_path / "wait.sh").write_text("touch on\nuntil [ -e go ]; do sleep 0.02; done\necho over\n")
    first, later = draft(), draft()
    async with first.dialed(url):
        session = await first.new_session(tmp_path)
        await first.prompt(session, WAIT)
        while not (tmp_path / "on").exists():  # noqa: ASYNC110 - no event tells of it
            await asyncio.sleep(0.02)
    async with later.dialed(url):
        await later.connection.resume_session(session, str(tmp_path), replay_from={"type": "start"})
        assert later.states() == ["running"]
        (tmp_path / "go").touch()
        idle = await later.saw("state_update", state="idle")
        assert idle["stopReason"] == "end_turn"
        said = [update["content"][0]["text"] for update in later.updates("user_message")]
        assert said == [WAIT]
        assert later.cards()[-1]["status"] == "completed"
        assert (await later.turn(session, "Run `echo on`"))["stopReason"] == "end_turn"
        assert later.states() == ["running", "idle", "running", "idle"]
