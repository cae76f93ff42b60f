"""What sessions and sub-agents cost: calls of Crow's functions, which no machine's load changes."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import crow
from crow.core.agent import Agent
from crow.testing import ScriptedModel

HOME = str(Path(crow.__file__).parent)


class Calls:
    """How many functions of Crow's were called."""

    def __init__(self) -> None:
        self.count = 0

    @contextmanager
    def counted(self) -> Generator[None]:
        """Count in here."""

        def note(frame: FrameType, event: str, arg: object) -> None:
            self.count += event == "call" and frame.f_code.co_filename.startswith(HOME)

        before = sys.getprofile()
        sys.setprofile(note)
        try:
            yield
        finally:
            sys.setprofile(before)


class Watching:
    """What a session or an agent uses here."""

    def init_session(self, session: object) -> None: ...

    def before_tool(self, ctx: object) -> None: ...

    def after_tool(self, ctx: object) -> None: ...

    def after_run(self, ctx: object) -> None: ...


async def test_sessions_and_sub_agents_take_over_what_there_is(tmp_path: Path) -> None:
    agent = Agent(ScriptedModel(), hooks=[Watching() for _ in range(10)], tools=())
    for _ in range(2):  # what is looked at once is known then
        session = await agent.new_session(tmp_path)
        session.use(Watching())
        agent.child()
    await agent.new_session(tmp_path)
    plain, extended, below = Calls(), Calls(), Calls()
    with plain.counted():
        session = await agent.new_session(tmp_path)
    with extended.counted():
        session.use(Watching())
    with below.counted():
        agent.child()
    assert plain.count <= 36
    assert extended.count <= 80
    assert below.count <= 12
