"""Questions to the person at the terminal, over a real one."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Crow, calls
from tests.cli.forks import Fork

from crow.testing.endpoint import HANG, Endpoint, answer, begin, delta, event, piece

PROMPT = "\n> "
TOUCH = ("Bash", {"command": "touch made"})


class Screen:
    """A terminal with a command in it."""

    def __init__(self) -> None:
        self.master, self.slave = pty.openpty()
        self.shown = b""
        self.seen = 0
        self._news = asyncio.Event()
        asyncio.get_running_loop().add_reader(self.master, self._read)

    def _read(self) -> None:
        try:
            self.shown += os.read(self.master, 65536)
        except OSError:
            asyncio.get_running_loop().remove_reader(self.master)
        self._news.set()

    async def until(self, text: str) -> None:
        """Wait until a text is shown behind the one before."""
        try:
            async with asyncio.timeout(50):
                while (found := self.shown.find(text.encode(), self.seen)) < 0:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(self.shown.decode()) from None
        self.seen = found + len(text.encode())

    def type(self, text: str) -> None:
        """Type something."""
        os.write(self.master, text.encode())

    async def start(self, crow: Crow, *argv: str) -> Fork:
        """Start a command here."""
        env = {**os.environ, **crow.env, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
        streams = self.slave, self.slave, self.slave
        return await crow.forks.start(argv, crow.cwd, env, streams, new_session=True)

    async def close(self, process: Fork | asyncio.subprocess.Process) -> int:
        """Wait for the command's end; its status."""
        async with asyncio.timeout(50):
            status = await process.wait()
        asyncio.get_running_loop().remove_reader(self.master)
        os.close(self.slave)
        os.close(self.master)
        return status


ANSWERS = [  # what is typed, and whether the call runs
    ("1\n", True),
    ("\n", False),
    ("y\n", True),
    ("n\n", False),
    ("Yes\n", True),
    ("no\n", False),
    ("9\nwhat\nallow once\n", True),  # what is no answer is asked for again
    ("?\n2\n", True),  # what it would do, and the question once more
]


@pytest.mark.slow
async def test_each_answer_is_understood_and_always_holds_for_the_next_run_as_well(
    crow: Crow, endpoint: Endpoint
) -> None:
    wanted = [("Bash", {"command": f"touch made{n}"}) for n in range(len(ANSWERS))]
    endpoint.play(*(calls(one) for one in wanted), answer("Done."))
    screen = Screen()
    process = await screen.start(crow, "run", "--plain", "Make them")
    for n, (typed, made) in enumerate(ANSWERS):
        begun = screen.seen
        await screen.until(f"no rule allows touch made{n}")
        await screen.until("Enter rejects: ")
        assert b"? Bash wants to run" in screen.shown[begun:]
        screen.type(typed)
        if not made:
            await screen.until("denied: the user rejected this call")
    assert await screen.close(process) == 0
    assert screen.shown.count(b"Enter rejects: ") == len(ANSWERS) + 3
    assert screen.shown.count(b"  It makes made7, or changes its date.") == 1
    assert [(crow.cwd / f"made{n}").exists() for n in range(len(ANSWERS))] == [
        made for _, made in ANSWERS
    ]

    last = f"touch made{len(ANSWERS) - 1}"
    kept = crow.cwd / ".claude/settings.local.json"
    assert json.loads(kept.read_text("utf-8"))["permissions"]["allow"] == [f"Bash({last})"]
    made = crow.cwd / last.removeprefix("touch ")
    made.unlink()
    endpoint.play(calls(wanted[-1]), answer("Done."))
    ended = await crow("run", "Again")
    assert (ended.status, "denied" in ended.err) == (0, False)
    assert made.exists()


async def test_another_rule_is_kept_by_its_words_and_one_for_the_session_alone(
    crow: Crow, endpoint: Endpoint
) -> None:
    remove = ("Bash", {"command": "rm more"})
    touch = ("Bash", {"command": "touch more"})
    endpoint.play(calls(TOUCH), calls(touch), calls(remove), calls(remove), answer("Done."))
    screen = Screen()
    process = await screen.start(crow, "run", "--plain", "Make them")
    await screen.until("2 RULE by another rule, ? explains, Enter rejects: ")
    screen.type("2 Bash(touch\n")
    await screen.until("Bash(touch is no rule.")
    screen.type("2 Bash(touch *)\n")
    await screen.until("no rule allows rm more")
    await screen.until("Enter rejects: ")
    screen.type("s\n")
    await screen.until("Done.")
    assert await screen.close(process) == 0
    kept = crow.cwd / ".claude/settings.local.json"
    assert json.loads(kept.read_text("utf-8"))["permissions"]["allow"] == ["Bash(touch *)"]


@pytest.mark.parametrize("word", ["\x04", "/exit\n"])
async def test_who_leaves_at_a_question_ends_the_run(
    crow: Crow, endpoint: Endpoint, word: str
) -> None:
    endpoint.play(calls(TOUCH), answer("Done."))
    screen = Screen()
    process = await screen.start(crow, "run", "--plain", "Make it")
    await screen.until("Enter rejects: ")
    screen.type(word)
    assert await screen.close(process) == 130
    assert not (crow.cwd / "made").exists()
    assert len(endpoint.requests) == 1
    assert b"rejects:   " not in screen.shown


@pytest.mark.parametrize("word", ["\x04", " quit\n"])
async def test_who_leaves_at_a_question_of_the_talk_leaves_it(
    crow: Crow, endpoint: Endpoint, word: str
) -> None:
    endpoint.play(calls(TOUCH, ("Bash", {"command": "touch more"})), answer("Done."))
    screen = Screen()
    process = await screen.start(crow, "--plain")
    await screen.until(PROMPT)
    screen.type("one\r")
    await screen.until("Enter rejects: ")
    screen.type(word)
    await screen.until("goes on")
    assert await screen.close(process) == 0
    assert [one for one in ("made", "more") if (crow.cwd / one).exists()] == []
    assert len(endpoint.requests) == 1


async def test_who_leaves_at_the_question_whether_to_trust_starts_nothing(
    crow: Crow, endpoint: Endpoint
) -> None:
    settings = crow.cwd / ".claude/settings.json"
    settings.parent.mkdir()
    hooks = [{"hooks": [{"type": "command", "command": "touch made"}]}]
    settings.write_text(json.dumps({"hooks": {"SessionStart": hooks}}), "utf-8")
    screen = Screen()
    process = await screen.start(crow, "--plain")
    await screen.until("write trust: ")
    screen.type("/exit\n")
    assert await screen.close(process) == 130
    assert not (crow.cwd / "made").exists()


async def test_ctrl_c_ends_a_question(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(calls(TOUCH))
    screen = Screen()
    process = await screen.start(crow, "run", "--plain", "Make it")
    await screen.until("Enter rejects: ")
    process.send_signal(signal.SIGINT)
    assert await screen.close(process) == 130
    assert not (crow.cwd / "made").exists()


async def test_a_question_of_a_hook_is_asked(
    crow: Crow, endpoint: Endpoint, tmp_path: Path
) -> None:
    extension = tmp_path / "curious.py"
    extension.write_text(
        "async def before_run(ctx):\n"
        "    sure = await ctx.ui.confirm('Really?')\n"
        "    colour = await ctx.ui.select('Which?', ['red', 'blue'])\n"
        "    name = await ctx.ui.ask('Who?')\n"
        "    return f'{sure} {colour} {name}'\n",
        "utf-8",
    )
    endpoint.play(answer("Fine."))
    screen = Screen()
    process = await screen.start(crow, "run", "--plain", "--extension", str(extension), "Go")
    await screen.until("y/n: ")
    screen.type("maybe\ny\n")
    await screen.until("1-2 (Enter leaves it open): ")
    screen.type("3\nblue\n")
    await screen.until("Who?")
    screen.type("Ada\n")
    assert await screen.close(process) == 0
    sent = [m["content"] for m in endpoint.requests[0].body["messages"] if m["role"] == "user"]
    assert any("True blue Ada" in text for text in sent)


async def test_crow_alone_answers_prompt_after_prompt(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(answer("First."), calls(TOUCH), answer("Second."))
    screen = Screen()
    process = await screen.start(crow, "--plain")
    await screen.until(PROMPT)
    screen.type("one\r")
    await screen.until("First.")
    await screen.until(PROMPT)
    screen.type("two\r")
    await screen.until("Enter rejects: ")
    screen.type("1\n")
    await screen.until("Second.")
    await screen.until(PROMPT)
    screen.type("\x04")
    assert await screen.close(process) == 0
    assert (crow.cwd / "made").exists()
    prompts = [
        message["content"]
        for message in endpoint.requests[-1].body["messages"]
        if message["role"] == "user"
    ]
    assert prompts == ["one", "two"]


async def test_ctrl_c_ends_an_answer_and_the_talk_goes_on(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play([begin(), piece(event(delta(content="Let me"))), HANG], answer("Again."))
    screen = Screen()
    process = await screen.start(crow, "--plain")
    await screen.until(PROMPT)
    screen.type("one\r")
    await screen.until("Let me")
    process.send_signal(signal.SIGINT)
    await screen.until("interrupted")
    await screen.until(PROMPT)
    screen.type("two\r")
    await screen.until("Again.")
    await screen.until(PROMPT)
    screen.type("\x04")
    assert await screen.close(process) == 0


CHANGES: list[tuple[tuple[str, Any], list[str], list[str]]] = [  # wanted, shown, hidden
    (
        ("Edit", {"file_path": "README.md", "old_string": "does", "new_string": "did"}),
        ["@@ line 1", "\x1b[31m-It does things.", "\x1b[32m+It did things."],
        [],
    ),
    (
        ("Write", {"file_path": "new.py", "content": "".join(f"row {n}\n" for n in range(99))}),
        ["\x1b[32m+row 0", "+row 39", "… and 59 more lines"],
        ["+row 40"],
    ),
    (
        ("Write", {"file_path": "odd.txt", "content": "a\x1b[2Jb\u202ec\n" + "x" * 5000}),
        ["+a<001B>[2Jb<202E>c", "characters more)"],
        ["\x1b[2J"],
    ),
]


async def test_the_question_shows_what_will_be_written(crow: Crow, endpoint: Endpoint) -> None:
    read = ("Read", {"file_path": "README.md"})
    endpoint.play(calls(read), *(calls(wanted) for wanted, _, _ in CHANGES), answer("Done."))
    screen = Screen()
    process = await screen.start(crow, "run", "--plain", "Change it")
    for _, shown, hidden in CHANGES:
        begun = screen.seen
        await screen.until("Enter rejects: ")
        asked = screen.shown[begun : screen.seen].decode()
        screen.type("n\n")
        assert [one for one in shown if one not in asked] == []
        assert [one for one in hidden if one in asked] == []
    await screen.close(process)


async def test_a_call_that_cannot_succeed_is_no_question(crow: Crow, endpoint: Endpoint) -> None:
    edit = ("Edit", {"file_path": "README.md", "old_string": "does", "new_string": "did"})
    gone = ("Edit", {"file_path": "gone.md", "old_string": "does", "new_string": "did"})
    endpoint.play(calls(edit), calls(gone), answer("Done."))
    screen = Screen()
    process = await screen.start(crow, "run", "--plain", "Change it")
    await screen.until("Done.")
    assert await screen.close(process) == 0
    assert b"wants to run" not in screen.shown
    assert b"has not been read in this session" in screen.shown
    assert b"gone.md does not exist" in screen.shown


async def test_the_question_shows_the_arguments_of_other_tools(
    crow: Crow, endpoint: Endpoint, tmp_path: Path
) -> None:
    extension = tmp_path / "poster.py"
    extension.write_text(
        "from crow import tool\n"
        "def post(title: str, body: str) -> str:\n"
        "    'Post it.'\n"
        "    return title\n"
        "def init_agent(agent):\n"
        "    agent.add_tool(tool(post))\n"
        "def before_tool(ctx):\n"
        "    ctx.args['body'] = 'as the hook has it'\n",
        "utf-8",
    )
    endpoint.play(calls(("post", {"title": "Hello", "body": "x"})), answer("Done."))
    screen = Screen()
    process = await screen.start(crow, "run", "--plain", "--extension", str(extension), "Post it")
    await screen.until("? post wants to run")
    await screen.until('"body": "as the hook has it"')
    await screen.until("Enter rejects: ")
    screen.type("n\n")
    await screen.close(process)


ALSO = [pytest.param(word, marks=pytest.mark.slow) for word in ("/quit", "exit")]


@pytest.mark.parametrize("word", ["/exit", " quit ", *ALSO])
async def test_words_that_leave_leave_and_are_listed(
    crow: Crow, endpoint: Endpoint, word: str
) -> None:
    screen = Screen()
    process = await screen.start(crow, "--plain")
    await screen.until(PROMPT)
    screen.type("/help\r")
    await screen.until("/exit: Leave")
    await screen.until(PROMPT)
    screen.type("/exti\r")
    await screen.until("There is no command /exti; did you mean /exit?")
    await screen.until(PROMPT)
    screen.type(f"{word}\r")
    await screen.until("goes on")
    assert await screen.close(process) == 0
    assert endpoint.requests == []
