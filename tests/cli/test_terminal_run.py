"""``crow run`` on a terminal: the cards, questions and keys of the talk, and then its end."""

from __future__ import annotations

import asyncio

import pytest
from tests.cli.conftest import Crow, calls
from tests.cli.screens import Tmux, needs_tmux
from tests.cli.test_chat import EDIT, READ, TOUCH, half, sent

from crow.testing.endpoint import Endpoint, answer

pytestmark = needs_tmux
WAIT = ("Bash", {"command": "seq 40; until [ -e go ]; do sleep 0.02; done; exit 3"})


async def test_a_run_has_cards_and_questions_and_ends_with_its_answer(
    crow: Crow, endpoint: Endpoint, tmux: Tmux
) -> None:
    endpoint.play(calls(WAIT), calls(READ), calls(EDIT), answer("# Done\n\nAll **good**."))
    await tmux.start(crow, "run", "--allow", "Bash", "Fix it")
    await tmux.until("│ … 35 earlier lines (Ctrl-O)", "│ 40", "Running seq", "scripted · default")
    (crow.cwd / "go").touch()
    asked = await tmux.until("w  No, and say what should be different")
    assert "3 + It did things." in asked
    await asyncio.sleep(0.5)  # a question takes no key at first
    await tmux.keys("y")
    screen = await tmux.until("session ", "ended: 0")
    card = "● Bash seq 40; until [ -e go ]; do sleep 0.02; done; exit 3 · ✗ exit 3"
    assert card in await tmux.history()
    assert "● Edit README.md · ✓ changed, +1 -1" in screen
    assert "\nDone\nAll good.\nsession " in screen.replace("\n\n", "\n")
    assert "scripted · default" not in screen


@pytest.mark.slow
async def test_what_is_piped_in_goes_along_and_keys_come_from_the_terminal(
    crow: Crow, endpoint: Endpoint, tmux: Tmux
) -> None:
    endpoint.play(calls(TOUCH), answer("So not."))
    await tmux.start(crow, "run", "What does this change?", piped="echo a diff")
    await tmux.until("? Bash wants to run")
    await asyncio.sleep(0.5)
    await tmux.keys("n")
    await tmux.until("✗ denied", "So not.", "ended: 0")
    assert sent(endpoint) == ["What does this change?\n\n<stdin>\na diff\n</stdin>"]


async def test_what_is_typed_meanwhile_is_heard_before_the_run_ends(
    crow: Crow, endpoint: Endpoint, tmux: Tmux
) -> None:
    endpoint.play(calls(WAIT), answer("First."), answer("Second."))
    await tmux.start(crow, "run", "--allow", "Bash", "Begin")
    await tmux.until("│ 40")
    await tmux.type("steered")
    await tmux.keys("Enter")
    await tmux.type("queued")
    await tmux.keys("Tab")
    await tmux.until("↳ steered", "⏸ queued")
    (crow.cwd / "go").touch()
    screen = await tmux.until("Second.", "ended: 0")
    assert screen.index("> steered") < screen.index("First.") < screen.index("> queued")
    assert sent(endpoint, 1) == ["Begin", "steered"]


async def test_a_run_that_is_stopped_says_how_it_goes_on(
    crow: Crow, endpoint: Endpoint, tmux: Tmux
) -> None:
    endpoint.play(half())
    await tmux.start(crow, "run", "Think")
    await tmux.until("Let me")
    await tmux.keys("C-c")
    screen = await tmux.until("ended: 130")
    assert "crow: interrupted; crow run --resume" in screen


async def test_lines_are_written_where_they_are_wanted_or_the_terminal_cannot_more(
    crow: Crow, endpoint: Endpoint, tmux: Tmux
) -> None:
    endpoint.play(calls(READ), answer("It does **things**."))
    await tmux.start(crow, "run", "What?", TERM="dumb")
    screen = await tmux.until("ended: 0")
    assert "● Read README.md\n  └ 3 lines\n\nIt does **things**.\n" in screen
