"""``crow ext test``: an extension's own tests, and plays of it that hypothesis makes up."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.cli.conftest import Crow

EXAMPLES = Path(__file__).parents[2] / "examples"
WRONG = {
    "after a cancelled run": (
        "def after_run(ctx):\n    if ctx.reply.stop_reason == 'cancelled':\n        raise OSError(1)\n",
        "failed at after_run: OSError: 1",
        r"cancel\(",
    ),
    "in a second session": (
        (
            "def on_session_start(ctx):\n    ctx.agent.add_command(C)\nfrom crow import Command\n"
            "C = Command('mine', 'Mine', lambda ctx: None)\n"
        ),
        "there is a command 'mine' already",
        r"enter\(|at_once\(",  # whichever was found first, or smallest in the time that there was
    ),
    "with arguments of its own tool": (
        (
            "from crow import tool\n@tool\ndef half(number: int) -> str:\n    '''Half.'''\n"
            "    return str(6 // number)\ndef after_tool(ctx):\n"
            "    if ctx.name == 'half' and ctx.error: raise OSError(3)\n"
            "def init_agent(agent):\n    agent.add_tool(half)\n"
        ),
        "failed at after_tool: OSError: 3",
        r"\('half', \{'number': 0\}\)",
    ),
    "once only": (
        "seen = []\ndef after_run(ctx):\n    seen.append(1)\n    if len(seen) == 9: raise OSError(4)\n",
        "failed at after_run: OSError: 4",
        "",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", WRONG)
async def test_what_is_wrong_is_found_by_living_with_it(crow: Crow, what: str) -> None:
    text, said, step = WRONG[what]
    (crow.cwd / "guard.py").write_text(text, "utf-8")
    done = await crow("ext", "test", "guard.py", "--json", "--plays", "200")
    assert done.status == 1
    (one,) = [json.loads(each) for each in done.out.splitlines()]
    assert said in one["what"]
    assert re.search(step, "".join(one["steps"]))
    assert len(one["steps"]) <= 6
    assert ("ctx.state" in one["do"]) == (what == "once only")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stopwatch.py", "ask_before_removing.py", "crow-weather"])
async def test_the_examples_can_be_lived_with(crow: Crow, name: str) -> None:
    done = await crow("ext", "test", str(EXAMPLES / name))
    assert done.status == 0, done.out + done.err
    assert "50 plays of it, with the seed 0\nnothing is wrong with it\n" in done.err


@pytest.mark.slow
async def test_its_own_tests_are_run_first(crow: Crow) -> None:
    await crow("ext", "new", "my-guard")
    done = await crow("ext", "test", "crow-my-guard", "--plays", "2")
    assert done.status == 0, done.out + done.err
    assert "2 passed" in done.out
    path = crow.cwd / "crow-my-guard" / "tests" / "test_it_fails.py"
    path.write_text("def test_it():\n    assert 1 == 2\n", "utf-8")
    failed = await crow("ext", "test", "crow-my-guard", "--plays", "2")
    assert failed.status == 1
    assert "assert 1 == 2" in failed.out
    assert failed.err.endswith("its tests failed, and nothing else was found\n")
