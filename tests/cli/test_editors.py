"""``crow acp --print-config`` and the page about editors, which show the same."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Crow

from crow.cli.editors import EDITORS, snippet
from crow.testing import FakeEditor

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/editors.md").read_text("utf-8")
PROGRAM = str(Path(sys.executable).with_name("crow"))


@pytest.mark.parametrize("name", EDITORS)
def test_the_page_shows_what_the_command_prints(name: str) -> None:
    editor = EDITORS[name]
    shown = f"```{editor.language}\n{snippet(name, ['/home/ada/.local/bin/crow'])}\n```"
    assert shown in PAGE


def test_the_page_names_every_editor_that_the_command_knows() -> None:
    (named,) = re.findall(r"--print-config zed +# or: (.*)", PAGE)
    assert {"zed", *named.split(", ")} == set(EDITORS)


@pytest.mark.parametrize("name", EDITORS)
async def test_what_is_printed_names_the_command_by_its_whole_path(crow: Crow, name: str) -> None:
    ended = await crow("acp", "--print-config", name)
    assert ended.status == 0
    assert PROGRAM in ended.out
    assert EDITORS[name].name in ended.err


@pytest.mark.parametrize("name", ["zed", "jetbrains"])
async def test_the_printed_command_starts_an_agent(crow: Crow, name: str) -> None:
    ended = await crow("acp", "--print-config", name)
    server: dict[str, Any] = json.loads(ended.out)["agent_servers"]["Crow"]
    editor = FakeEditor()
    async with editor.spawned(
        server["command"], *server["args"], cwd=crow.cwd, env={"PATH": os.defpath}
    ):
        session = await editor.new_session(crow.cwd)
        assert (await editor.prompt(session, "hello")).stop_reason == "end_turn"


@pytest.mark.parametrize("name", EDITORS)
def test_a_path_with_blanks_and_marks_stays_one_word(name: str) -> None:
    awkward = '/opt/my "tools"/crow'
    written = snippet(name, [awkward])
    if EDITORS[name].language == "sh":
        import shlex

        assert shlex.split(shlex.split(written)[2]) == [awkward, "acp"]
    else:
        assert json.dumps(awkward) in written


async def test_an_editor_that_is_not_known_is_refused_with_the_ones_that_are(crow: Crow) -> None:
    ended = await crow("acp", "--print-config", "zedd")
    assert ended.status == 2
    assert "did you mean 'zed'?" in ended.complaint
    assert "jetbrains" in ended.complaint
