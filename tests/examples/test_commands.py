"""The examples that are commands: commit_messages, prompt_library."""

from __future__ import annotations

import subprocess

import pytest
from tests.examples.test_examples import load

from crow.testing import Pilot


def git(crow: Pilot, *arguments: str) -> str:
    return subprocess.check_output(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=crow.cwd, text=True
    )


@pytest.mark.parametrize("agreed", [True, False])
def test_only_what_is_staged_is_committed_and_only_after_a_yes(crow: Pilot, agreed: bool):
    git(crow, "init", "-q")
    for name, value in (("user.name", "a"), ("user.email", "a@b")):
        git(crow, "config", name, value)
    (crow.cwd / "a").write_text("a\n")
    (crow.cwd / "b").write_text("b\n")
    git(crow, "add", "a")
    crow.use(load("commit_messages").CommitMessages)
    crow.user.answers(agreed)
    crow.run("/commit", "Add the letter a\n\nand more")
    crow.asked("Add the letter a")
    assert git(crow, "status", "--short") == ("?? b\n" if agreed else "A  a\n?? b\n")
    if agreed:
        assert git(crow, "log", "--format=%s") == "Add the letter a\n"


def test_nothing_staged_asks_no_model(crow: Pilot):
    git(crow, "init", "-q")
    crow.use(load("commit_messages").CommitMessages)
    crow.run("/commit")
    crow.told("Nothing is staged.")


def test_a_prompt_of_the_library_is_filled_once(crow: Pilot):
    (crow.cwd / "prompts").mkdir()
    (crow.cwd / "prompts" / "review.md").write_text("# Review a file\n$1 for $2: $ARGUMENTS\n")
    crow.use(load("prompt_library").PromptLibrary)
    crow.run('/review "my file.py" $1`touch x`', "Fine.")
    crow.sent('my file.py for $1`touch: "my file.py" $1`touch x`')
    crow.run("/help")
    crow.told("Review a file")
    assert [path.name for path in crow.cwd.iterdir()] == ["prompts"]
