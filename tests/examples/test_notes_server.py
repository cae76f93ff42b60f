"""A server of this process: its tools run here, and are judged as those of any server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.examples.test_examples import EXAMPLES, load

from crow.testing import Pilot, call


class AsAProgram:
    """The same server, started as any other."""

    def __init__(self) -> None:
        self.mcp_servers = {
            "notes": {"command": sys.executable, "args": [str(EXAMPLES / "notes_server.py")]}
        }

    def before_run(self) -> None: ...


@pytest.mark.variants(1)
@pytest.mark.parametrize("of", [lambda: load("notes_server"), AsAProgram])
def test_what_was_noted_is_found(crow: Pilot, of: Any):
    crow.use(of())
    crow.configure(allow=["mcp__notes__add"])
    crow.user.answers("reject_once")
    add = call("mcp__notes__add", text="Answers\nare short.")
    crow.run("Note it", add, call("mcp__notes__find", words="short"), "Done.")
    assert (Path.home() / ".crow" / "notes.md").read_text() == "- Answers are short.\n"
    crow.asked("find", times=1)
    crow.denied("mcp__notes__find")


def test_the_next_session_begins_with_the_notes(crow: Pilot):
    (Path.home() / ".crow").mkdir()
    (Path.home() / ".crow" / "notes.md").write_text("- Answers are short.\n")
    crow.use(load("notes_server"))
    crow.configure(allow=["mcp__notes"])
    crow.run("Hi", call("mcp__notes__find", words="long"), "Hi.")
    crow.sent("- Answers are short.")
    assert "short" not in crow.called("mcp__notes__find")[0].result.text
    crow.prefix_stable()
