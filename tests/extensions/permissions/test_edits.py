"""Commands that change files which are there already."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("command", ["mv README.md two.md", "cp README.md src/app.ts"])
@pytest.mark.parametrize("mode", ["acceptEdits", "default"])
def test_a_file_may_be_moved_over_another_where_edits_are_accepted(
    make_world, command: str, mode: str
) -> None:
    world = make_world()
    (world.cwd / "two.md").write_text("b\n")
    wanted = "allow" if mode == "acceptEdits" else "ask"
    made = world.judge(command, mode=mode)
    assert made.decision == wanted
    assert made.decision == "ask" or made.reason.endswith("in the mode acceptEdits")


@pytest.mark.parametrize("path", ["two.md/../../other/x", "two.md/.git/config", "two.md/../.env"])
def test_a_file_that_is_taken_for_a_directory_opens_nothing(make_world, path: str) -> None:
    world = make_world()
    (world.cwd / "two.md").write_text("b\n")
    made = world.judge(f"cp README.md {path}", mode="acceptEdits", deny=["Edit(.env)"])
    assert made.decision in {"ask", "deny"}


@pytest.mark.parametrize("command", ["rm -rf /", "rm -rf ~", "rmdir ..", "rm -r ~/*"])
def test_a_removal_that_is_always_asked_about_says_what_it_removes(world, command: str) -> None:
    made = world.judge(command, mode="bypassPermissions")
    assert made.decision == "ask"
    assert " would remove /" in made.reason
