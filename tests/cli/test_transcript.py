"""The transcript of the documentation: Crow extends itself in a terminal, and it is written down.

``make pictures`` writes it anew.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Crow, calls
from tests.cli.forks import Forks
from tests.cli.pictures import TOOK, WRITES
from tests.cli.screens import Tmux, needs_tmux
from tests.cli.test_pictures import NOTICE

from crow.extensions.authoring import SKILL, SKILLS
from crow.testing.endpoint import Endpoint, answer

pytestmark = [needs_tmux, pytest.mark.slow]
PAGE = Path(__file__).parents[2] / "docs" / "extensions.md"
BLOCK = re.compile(r"(?<=<!-- transcript -->\n```text\n).*?(?=^```)", re.MULTILINE | re.DOTALL)
GUIDE = SKILLS / SKILL / "SKILL.md"
PROMPT = "Write a crow extension: nobody pushes to main"
LAST = "It holds: nobody pushes to main from now on."
NO_PUSH = '''"""Nobody pushes to main."""

from crow import Deny


class NoPush:
    def before_tool(self, call):
        if "push origin main" in call.input.get("command", ""):
            return Deny("nobody pushes to main")
'''


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder with a short name: where it stands on the screen lines are as long everywhere."""
    folder = Path(tempfile.mkdtemp(prefix="c", dir="/tmp"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
async def tmux(place: Path) -> AsyncIterator[Tmux]:
    terminal = Tmux(place, 160, 40)
    yield terminal
    await terminal.close()


async def test_the_page_shows_what_happens(
    tmux: Tmux, place: Path, forks: Forks, endpoint: Endpoint
) -> None:
    (project := place / "jobs").mkdir()
    (project / ".git").mkdir()
    crow = Crow(project, forks)
    crow.use(endpoint)
    path = project / "no_push.py"
    endpoint.play(
        calls(("Read", {"file_path": str(GUIDE)}), text="I look up how that is done."),
        calls(("Write", {"file_path": str(path), "content": NO_PUSH})),
        calls(("LoadExtension", {"file_path": str(path)}), text="Have a look at it:"),
        calls(("Bash", {"command": "git push origin main"}), text="I try whether it holds."),
        answer(LAST),
    )
    await tmux.start(crow, "--allow", "Edit", CROW_REDUCED_MOTION="1", CROW_MODEL="gpt-5")
    await tmux.until("gpt-5 · default")
    await tmux.type(PROMPT)
    await tmux.keys("Enter")
    await tmux.until("Use it until Crow ends")
    await asyncio.sleep(NOTICE)
    asked = told(await tmux.history(), project)
    await tmux.keys("y")
    await tmux.until("from now on.", "gpt-5 · default")
    later = told(await tmux.history(), project)
    begun, done = asked.index(f"> {PROMPT}"), asked.index("w  No, and say")
    used = later.index("● LoadExtension")
    keep(f"{asked[begun:done].rstrip()}\n> y\n\n{later[used : later.index(LAST)]}{LAST}\n")


def told(screen: str, project: Path) -> str:
    """What stood on a screen, without what is each machine's own."""
    for path, name in {str(project): "/home/me/jobs", str(GUIDE.parent): "crow-extensions"}.items():
        screen = screen.replace(path, name)
    return "\n".join(line.rstrip() for line in TOOK.sub("", screen).strip().splitlines())


def keep(text: str) -> None:
    """Write the transcript where that is wanted; else see that the page says the same."""
    page = PAGE.read_text("utf-8")
    if WRITES:
        PAGE.write_text(BLOCK.sub(lambda _: text, page, count=1), "utf-8")
        return
    assert BLOCK.findall(page) == [text], "the transcript is old: make pictures"
