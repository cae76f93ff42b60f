"""Several sessions in one window: each works by itself, and a line says which waits for whom."""

from __future__ import annotations

import asyncio

import pytest
from tests.cli.conftest import Crow, calls
from tests.cli.screens import Tmux, needs_tmux
from tests.cli.test_chat import READY, TOUCH, half, lines_of
from tests.cli.test_session_commands import say, sent

from crow.testing.endpoint import Endpoint, answer

pytestmark = needs_tmux


@pytest.mark.slow
async def test_a_session_goes_on_while_another_one_is_talked_to(
    crow: Crow, endpoint: Endpoint, tmux: Tmux
) -> None:
    endpoint.play(half("The pipe is"), answer("The lamp is lit."), answer("Brighter."))
    await tmux.start(crow)
    await tmux.until(READY)
    await say(tmux, "Mend the pipe", "The pipe is")
    screen = await say(tmux, "/new Light the lamp", "The lamp is lit.", "2· Light the lamp")
    assert "── 2 · Light the lamp ─" in screen
    assert "1✳ Mend the pipe" in screen
    assert "The pipe is" not in screen
    await tmux.type("a draft")
    await tmux.until("> a draft")
    await tmux.keys("M-1")
    await tmux.until("── 1 · Mend the pipe ─", "The pipe is", "esc stops", gone="> a draft")
    await tmux.type("more")
    await tmux.keys("M-2")
    await tmux.until("> a draft", gone="more")
    await tmux.keys("C-u")
    await say(tmux, "Brighter", "Brighter.")
    assert sent(endpoint) == ["Light the lamp", "The lamp is lit.", "Brighter"]
    await tmux.keys("M-1")
    await tmux.until("> more", "esc stops")
    await tmux.keys("Escape")
    screen = await tmux.until("! interrupted", gone="esc stops")
    assert "1· Mend the pipe" in screen


@pytest.mark.slow
async def test_a_session_that_waits_for_the_person_says_so(
    crow: Crow, endpoint: Endpoint, tmux: Tmux
) -> None:
    endpoint.play(half("The pipe is"), calls(TOUCH), answer("It is made."))
    await tmux.start(crow)
    await tmux.until(READY)
    await say(tmux, "Mend the pipe", "The pipe is")
    await say(tmux, "/new Make it", "touch made", "1✳ Mend the pipe")
    await tmux.keys("M-1")
    screen = await tmux.until("The pipe is", "2? Make it waits for you")
    assert lines_of(screen)[-3:-1] == [">", lines_of(screen)[-2]]
    assert (await tmux.title()).startswith("? crow")
    async with asyncio.timeout(50):
        while "waits for you" not in (told := (await crow("sessions", "--live")).out):
            pass
    live = told.splitlines()
    assert live[0][8:].startswith("  waits for you   just now  crow        Make it  [")
    assert live[2][8:].startswith("  works           just now  crow        Mend the pipe  [")
    assert [f"[{crow.cwd}]" in line for line in live] == [True, False, True]
    assert live[1].strip() == "touch made"
    await say(tmux, "/sessions", "Open sessions · 1 of 2", "waits for you · ")
    await tmux.keys("Escape")
    await tmux.until("2? Make it", gone="Open sessions")
    await tmux.keys("M-0")
    await tmux.until("── 2 · Make it ─", "y  Allow once", gone="> a draft")
    await tmux.keys("M-1")
    await tmux.until("The pipe is", gone="y  Allow once")
    await tmux.keys("M-2")
    await tmux.until_armed("y")
    await tmux.keys("y")
    await tmux.until("It is made.", "2· Make it")
    assert (crow.cwd / "made").exists()


async def test_a_session_that_has_ended_unseen_says_so_until_it_is_seen(
    crow: Crow, endpoint: Endpoint, tmux: Tmux
) -> None:
    seen = crow.cwd / "seen"
    wait = ("Bash", {"command": f"while ! test -e {seen}; do sleep 0.05; done"})
    endpoint.play(calls(wait), answer("It is there."))
    await tmux.start(crow, "--mode", "bypassPermissions")
    await tmux.until("bypassPermissions")
    await say(tmux, "Wait for it", "sleep 0.05")
    await say(tmux, "/new", "── 2 · new ─", "1✳ Wait for it")
    seen.touch()
    screen = await tmux.until("1✓ Wait for it done")
    assert "It is there." not in screen
    await tmux.keys("M-0")
    await tmux.until("── 1 · Wait for it ─", "It is there.", "1· Wait for it  2· new")


@pytest.mark.slow
async def test_leaving_says_what_would_be_stopped(
    crow: Crow, endpoint: Endpoint, tmux: Tmux
) -> None:
    endpoint.play(half("The pipe is"), answer("The lamp is lit."))
    await tmux.start(crow)
    await tmux.until(READY)
    await say(tmux, "Mend the pipe", "The pipe is")
    await say(tmux, "/new Light the lamp", "The lamp is lit.", "1✳")
    await say(tmux, "/exit", "1 other session would be stopped. Leave?")
    await tmux.until_armed("n")
    await tmux.keys("n")
    await tmux.until("1✳ Mend the pipe", gone="Leave?")
    await tmux.keys("C-d")
    await tmux.until("1 at work beside: once more leaves, and stops them")
    await tmux.keys("C-d")
    screen = await tmux.until("ended: 0")
    assert screen.count("goes on") == 2


async def test_one_session_is_closed_and_the_other_goes_on(
    crow: Crow, endpoint: Endpoint, tmux: Tmux
) -> None:
    endpoint.play(answer("The pipe is mended."), answer("The lamp is lit."), answer("Again."))
    await tmux.start(crow)
    await tmux.until(READY)
    await say(tmux, "Mend the pipe", "The pipe is mended.")
    await say(tmux, "/new Light the lamp", "The lamp is lit.", "2· Light the lamp")
    await say(tmux, "/close", "closed; crow --resume")
    screen = await tmux.until("closed; crow --resume", gone="2· Light the lamp")
    assert "── 1 · Mend the pipe ─" in screen
    await say(tmux, "Again", "Again.")
    assert sent(endpoint)[0] == "Mend the pipe"
    start = screen.partition("crow --resume ")[2].split()[0]
    await say(tmux, f"/resume {start}")
    await tmux.until_true(lambda screen: screen.count("> Light the lamp") == 2)
    await say(tmux, "/close", "ended: 0", f"crow --resume {start} goes on")


async def test_a_session_that_is_open_beside_is_gone_to_and_not_loaded_twice(
    crow: Crow, endpoint: Endpoint, tmux: Tmux
) -> None:
    endpoint.play(answer("The pipe is mended."), answer("The lamp is lit."))
    await tmux.start(crow)
    await tmux.until(READY)
    await say(tmux, "Mend the pipe", "The pipe is mended.")
    await say(tmux, "/new Light the lamp", "The lamp is lit.", "2· Light the lamp")
    await say(tmux, "/resume", "Sessions of this directory", "open here")
    await tmux.keys("Down", "Enter")
    await tmux.until("── 1 · Mend the pipe ─", "1· Mend the pipe", gone="Sessions of this")


async def test_a_roster_fits_forty_columns(crow: Crow, endpoint: Endpoint, narrow: Tmux) -> None:
    endpoint.play(*(answer(f"It is number {n}.") for n in range(4)))
    await narrow.start(crow)
    await narrow.until("scripted")
    for n in range(4):
        await say(narrow, f"/new This is number {n} of four", f"It is number {n}.")
    screen = await narrow.until("5·")
    assert all(len(line) <= 40 for line in screen.splitlines())
    roster = next(line for line in screen.splitlines() if line.startswith("1·"))
    assert roster == "1· new  2· Th…  3· Th…  4· Th…  5· Th…"
