"""A session that changes files and goes back, and is killed at one step of its extension.

``python dying.py FOLDER KEPT PART STEP``: ``PART`` is ``work`` or ``rewind``; with a step that is
never reached it prints how many there were.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from typing import Any

from crow import Agent
from crow.extensions import RewindHook
from crow.testing import ScriptedModel, call

FOLDER, KEPT, PART = sys.argv[1:4]
STEP = int(sys.argv[4])
WORK = (
    "echo more >> a; rm b; mkdir -p new; echo w > new/w; printf '\\0\\1' > bin; mv d/x d/q;"
    " ln -sfn b d/y; chmod 700 d/e/z"
)


class Steps:
    """Counts what the extension does in Python and in C, and kills the process at one of it."""

    def __init__(self) -> None:
        self.count = 0
        self.is_on = False

    def __call__(self, frame: Any, event: str, arg: object) -> None:
        if self.is_on and "extensions/rewind" in frame.f_code.co_filename:
            self.count += 1
            if self.count == STEP:
                os.kill(os.getpid(), signal.SIGKILL)


async def main() -> None:
    steps = Steps()
    threading.setprofile(steps)
    sys.setprofile(steps)
    keeper = RewindHook(directory=KEPT)
    script = (call("Bash", command=WORK), call("Write", file_path="fresh/n", content="n"), "done")
    async with Agent(ScriptedModel(*script), hooks=[keeper]) as agent:
        session = await agent.new_session(cwd=FOLDER)
        print(session.id, time.time(), flush=True)
        steps.is_on = PART == "work"
        await agent.run("Go on", session=session)
        plan = await keeper.plan_rewind(session, 0.0)
        print("worked", flush=True)
        steps.is_on = PART == "rewind"
        await keeper.carry_out_rewind(session, plan)
    print(steps.count, flush=True)


asyncio.run(main())
