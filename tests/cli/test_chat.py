"""The talk on the screen, in a real terminal: screens are compared as text."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from PIL import Image
from tests.cli.conftest import Crow, calls
from tests.cli.screens import Tmux, needs_tmux
from tests.cli.test_ask import Screen
from tests.cli.test_trust import wanting
from tests.terminal.test_pictures import PNG

from crow.project.trust import is_trusted
from crow.testing.endpoint import (
    HANG,
    USAGE,
    Endpoint,
    Response,
    answer,
    begin,
    delta,
    event,
    piece,
    stream,
)

pytestmark = needs_tmux
TOUCH = ("Bash", {"command": "touch made"})
EDIT = ("Edit", {"file_path": "README.md", "old_string": "does", "new_string": "did"})
READ = ("Read", {"file_path": "README.md"})
READY = "scripted · default"
"""What stands at the bottom once the session is open."""


def half(text: str = "Let me") -> Response:
    """An answer that begins and does not end."""
    return [begin(), piece(event(delta(content=text))), HANG]


def slowly(text: str, seconds: float = 0.01) -> Response:
    """An answer word by word."""
    words = [delta(content=word + " ") for word in text.split(" ")]
    pauses = [step for word in words for step in (word, seconds)]
    return stream(*pauses, delta(finish="stop"), USAGE)


def sent(endpoint: Endpoint, number: int = -1) -> list[str]:
    """What the user said, as a request has it."""
    messages = endpoint.requests[number].body["messages"]
    texts = [each["content"] for each in messages if each["role"] == "user"]
    return [text for text in texts if "<crow-context" not in text[:20]]


def lines_of(screen: str) -> list[str]:
    """The lines that are not empty."""
    return [line.rstrip() for line in screen.splitlines() if line.strip()]


async def test_an_answer_is_rendered_and_what_changes_is_asked_about(
    crow: Crow, endpoint: Endpoint, tmux: Tmux
) -> None:
    endpoint.play(
        answer("# Title\n\nSome **bold** `code`.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- item\n"),
        calls(READ),
        calls(EDIT),
        answer("Done."),
    )
    await tmux.start(crow)
    await tmux.until(READY)
    await tmux.type("Show me")
    await tmux.keys("Enter")
    screen = await tmux.until("• item")
    lines = lines_of(screen)
    at = lines.index("> Show me") + 1
    assert lines[at : at + 7] == [
        "Title",
        "Some bold code.",
        "╭──┬─╮",
        "│a │b│",
        "├──┼─┤",
        "│1 │2│",
        "╰──┴─╯",
    ]
    await tmux.type("Change it")
    await tmux.keys("Enter")
    asked = await tmux.until("w  No, and say what should be different")
    assert "? Edit wants to run" in asked
    assert "no rule allows to write" in asked
    assert "3 - It does things." in asked
    assert "3 + It did things." in asked
    assert "a  Always allow" in asked
    await asyncio.sleep(0.5)  # a question takes no key at first
    await tmux.keys("y")
    screen = await tmux.until("Done.")
    assert "● Edit README.md · ✓ changed, +1 -1" in screen
    assert "? Edit wants to run" not in screen
    assert "It did things." in (crow.cwd / "README.md").read_text("utf-8")
    await tmux.keys("C-d")
    await tmux.until("goes on", "ended: 0")


async def test_what_is_typed_meanwhile_steers_or_waits_and_can_be_taken_back(
    crow: Crow, endpoint: Endpoint, tmux: Tmux
) -> None:
    wait = ("Bash", {"command": "until [ -e go ]; do sleep 0.02; done; echo gone"})
    endpoint.play(calls(wait), answer("First."), answer("Second."))
    await tmux.start(crow, "--allow", "Bash")
    await tmux.until(READY)
    await tmux.type("Begin")
    await tmux.keys("Enter")
    await tmux.until("Running until", "esc stops")
    await tmux.type("steered")
    await tmux.keys("Enter")
    await tmux.type("queued")
    await tmux.keys("Tab")
    await tmux.type("mistake")
    await tmux.keys("Tab")
    await tmux.until("↳ steered", "⏸ queued", "⏸ mistake")
    await tmux.keys("M-Up")
    await tmux.until("> mistake", gone="⏸ mistake")
    await tmux.keys("C-c")
    await tmux.until("↳ steered", gone="> mistake")
    (crow.cwd / "go").touch()
    screen = await tmux.until("Second.")
    assert screen.index("> steered") < screen.index("First.") < screen.index("> queued")
    assert sent(endpoint, 1) == ["Begin", "steered"]
    assert sent(endpoint, 2) == ["Begin", "steered", "queued"]


async def test_escape_stops_at_once_and_nothing_typed_is_lost(
    crow: Crow, endpoint: Endpoint, tmux: Tmux
) -> None:
    endpoint.play(half(), answer("Again."))
    await tmux.start(crow)
    await tmux.type("early")  # before anybody reads it
    await tmux.keys("Enter")
    await tmux.until("Let me")
    await tmux.type("for later")
    await tmux.keys("Tab")
    await tmux.type("draft")
    await tmux.until("⏸ for later", "> draft")
    await tmux.keys("Escape")
    await tmux.until("! interrupted", "> for later", "  draft", gone="esc stops")
    await tmux.keys("Enter")
    screen = await tmux.until("Again.")
    assert "Let me" in screen
    assert sent(endpoint) == ["early", "for later\ndraft"]


async def test_ctrl_c_clears_then_interrupts_then_leaves(
    crow: Crow, endpoint: Endpoint, tmux: Tmux
) -> None:
    endpoint.play(half())
    await tmux.start(crow)
    await tmux.until(READY)
    await tmux.type("Go")
    await tmux.keys("Enter")
    await tmux.until("Let me")
    await tmux.type("a draft")
    await tmux.until("> a draft")
    await tmux.keys("C-c")
    await tmux.until("esc stops", gone="a draft")
    await tmux.keys("C-c")
    await tmux.until("! interrupted")
    await tmux.keys("Up")
    await tmux.until("> a draft")
    await tmux.keys("C-c")
    await tmux.keys("C-c")
    await tmux.until("Press Ctrl-C again to leave")
    await tmux.keys("C-c")
    await tmux.until("goes on", "ended: 0")


@pytest.mark.slow
async def test_keys_amid_a_question_are_words_until_nobody_types(
    crow: Crow, endpoint: Endpoint, tmux: Tmux
) -> None:
    endpoint.play([begin(), 0.3, *calls(TOUCH)[1:]], answer("Then not."))
    await tmux.start(crow)
    await tmux.until(READY)
    await tmux.type("Go")
    await tmux.keys("Enter")
    await tmux.type_slowly("yayn" * 4)  # the question appears while somebody types
    await tmux.until("? Bash wants to run", "yayn")
    assert not (crow.cwd / "made").exists()
    await asyncio.sleep(0.8)
    await tmux.keys("w")
    await tmux.until("No, and what should be different?")
    await tmux.type("make a folder")
    await tmux.keys("Enter")
    screen = await tmux.until("Then not.", "> yaynyaynyaynyayn")
    assert "✗ denied" in screen
    assert not (crow.cwd / "made").exists()
    assert sent(endpoint) == ["Go", "make a folder"]


@pytest.mark.slow
async def test_the_scrollback_has_everything_once_however_the_window_changes(
    crow: Crow, endpoint: Endpoint, tmux: Tmux
) -> None:
    text = "\n\n".join(
        f"## Part {n}.\n\nSome words of it.\n\n```\ncode {n};\n```" for n in range(40)
    )
    endpoint.play(answer("Older."), slowly(text))
    await tmux.start(crow)
    await tmux.until(READY)
    await tmux.type("First")
    await tmux.keys("Enter")
    await tmux.until("Older.")
    await tmux.type("More")
    await tmux.keys("Enter")
    for number, columns in ((5, 60), (15, 100), (25, 40)):
        await tmux.until(f"Part {number}.", whole=True)
        await tmux.resize(columns, 32)
    await tmux.until("code 39;", gone="esc stops")
    history = await tmux.history()
    for number in range(40):
        assert history.count(f"Part {number}.") == history.count(f"code {number};") == 1
    assert history.count("Older.") == 1
    assert history.count("scripted ·") == 1
    assert "esc stops" not in history
    for line in (await tmux.screen()).splitlines():
        assert len(line) <= 40


async def test_long_pastes_and_several_lines_are_sent_whole(
    crow: Crow, endpoint: Endpoint, tmux: Tmux
) -> None:
    endpoint.play(answer("Seen."), answer("Yes."))
    text = "\n".join(f"line {n}" for n in range(200))
    await tmux.start(crow)
    await tmux.until(READY)
    await tmux.type("one\\")
    await tmux.keys("Enter")
    await tmux.type("two")
    await tmux.keys("M-Enter")
    await tmux.type("three")
    for shift_enter in ("\x1b[13;2u", "\x1b[27;2;13~", "\n"):
        await tmux.type(shift_enter)
    await tmux.type("four")
    await tmux.until("> one", "  two", "  three", "  four")
    await tmux.paste(text)
    await tmux.until("four[paste #1 +200 lines]")
    await tmux.keys("Enter")
    await tmux.until("Seen.")
    assert sent(endpoint) == [f"one\ntwo\nthree\n\n\nfour{text}"]


async def test_commands_files_and_own_commands(crow: Crow, endpoint: Endpoint, tmux: Tmux) -> None:
    endpoint.play(answer("I saw it."))
    process = await asyncio.create_subprocess_exec("git", "init", "-q", cwd=crow.cwd)
    await process.wait()
    await tmux.start(crow)
    await tmux.until(READY)
    await tmux.type("/cos")
    await tmux.until("/cost", "Show what the session has cost so far")
    await tmux.keys("Enter")
    await tmux.until("This session has used no tokens yet")
    await tmux.type("!echo $((6 * 7))")
    await tmux.keys("Enter")
    await tmux.until("● ! echo $((6 * 7)) · ✓", "│ 42")
    await tmux.type("look at @READ")
    await tmux.until("  README.md")
    await tmux.keys("Tab")
    await tmux.until("> look at @README.md")
    await tmux.keys("Enter")
    await tmux.until("I saw it.")
    assert sent(endpoint)[-1] == "look at @README.md"
    assert "echo $((6 * 7))\n42" in json.dumps(endpoint.requests[0].body).replace("\\n", "\n")


async def test_own_commands_end_as_the_models_do(
    crow: Crow, endpoint: Endpoint, tmux: Tmux
) -> None:
    endpoint.play(answer("I saw it."))
    crow.env["CROW_API_KEY"] = "sk-0123456789abcdef"
    await tmux.start(crow)
    await tmux.until(READY)
    await tmux.type("!sleep 300 & printf '\\033[31mred\\033[0m %s' $CROW_API_KEY >&2; false")
    await tmux.keys("Enter")
    await tmux.until("✗", "│ red", "(it left processes running in the background)", READY)
    await tmux.type("!sleep 300; echo over")
    await tmux.keys("Enter")
    await tmux.until("esc stops")
    await tmux.keys("Escape")
    await tmux.until("Killed by SIGKILL", gone="esc stops")
    await tmux.type("and now")
    await tmux.keys("Enter")
    await tmux.until("I saw it.")
    told = json.dumps(endpoint.requests[0].body)
    assert "Exit code 1" in told
    assert "red" in told
    assert "u001b" not in told
    assert crow.env["CROW_API_KEY"] not in told


async def test_a_talk_goes_on_where_it_was(crow: Crow, endpoint: Endpoint, tmux: Tmux) -> None:
    endpoint.play(calls(READ), answer("It is a **thing**."), answer("Yes."))
    ended = await crow("run", "What is it?")
    assert ended.status == 0
    await tmux.start(crow, "-c")
    screen = await tmux.until("It is a thing.", READY)
    shown = ("> What is it?", "● Read README.md · ✓ 3 lines", "It is a thing.")
    assert [screen.index(text) for text in shown] == sorted(screen.index(text) for text in shown)
    await tmux.type("Really?")
    await tmux.keys("Enter")
    await tmux.until("Yes.")
    assert sent(endpoint) == ["What is it?", "Really?"]


async def test_a_notice_stands_at_the_call_that_it_is_about_and_a_refusal_stands_once(
    crow: Crow, endpoint: Endpoint, tmux: Tmux
) -> None:
    (crow.cwd / "guard.py").write_text(
        "from crow import Deny\n"
        "def before_run(prompt):\n    return Deny('not on Sundays') if prompt == 'Work' else None\n"
        "async def before_tool(ctx):\n    await ctx.ui.notify('looked at it', severity='warning')\n"
    )
    endpoint.play(calls(READ), answer("Yes."))
    await tmux.start(crow, "--extension", "guard.py")
    await tmux.until(READY)
    await tmux.type("Look")
    await tmux.keys("Enter")
    lines = lines_of(await tmux.until("Yes."))
    card = next(n for n, line in enumerate(lines) if line.startswith("● Read README.md"))
    assert lines[card + 1] == "  ! looked at it"
    await tmux.type("Work")
    await tmux.keys("Enter")
    await tmux.until("refused by guard: not on Sundays")
    await tmux.type("more")
    screen = await tmux.until("more")
    assert screen.count("not on Sundays") == 1


async def test_without_colours_there_are_none(crow: Crow, endpoint: Endpoint, tmux: Tmux) -> None:
    endpoint.play(answer("# Title\n\n```python\nx = 1\n```\n\nThe end."))
    await tmux.start(crow, NO_COLOR="1")
    await tmux.until(READY)
    await tmux.type("Go")
    await tmux.keys("Enter")
    await tmux.until("The end.")
    screen = (await tmux.screen("-e")).replace("\x1b[39m", "").replace("\x1b[49m", "")
    assert [code for code in range(31, 38) if f"[{code}m" in screen or f";{code}m" in screen] == []


CHOICES = ("1  With the API key", "2  With a model server", "3  With the rehearsal")


async def test_a_newcomer_has_three_choices_and_a_server_is_found(
    crow: Crow, tmux: Tmux, home: Path
) -> None:
    async with Endpoint() as endpoint:
        endpoint.models = ["qwen3"]
        endpoint.others["/api/ps"] = {"models": []}
        endpoint.play(answer("I am here."))
        place = endpoint.url.removeprefix("http://").removesuffix("/v1")
        await tmux.start(crow, OLLAMA_HOST=place)
        await tmux.until(*CHOICES)
        await asyncio.sleep(0.5)  # a question takes no key at first
        await tmux.keys("2")
        await tmux.until("ollama/qwen3 · default", "~/.crow/settings.json")
        await tmux.type("Hello?")
        await tmux.keys("Enter")
        await tmux.until("I am here.")
        await tmux.keys("C-d")
        await tmux.until("ended: 0")
    assert json.loads((home / ".crow/settings.json").read_text("utf-8"))["model"] == "ollama/qwen3"


async def test_a_newcomer_types_a_key_that_nobody_sees(crow: Crow, tmux: Tmux, home: Path) -> None:
    async with Endpoint() as endpoint:
        endpoint.models = ["gpt-5", "gpt-5-mini", "gpt-image-1"]
        await tmux.start(crow, OPENAI_BASE_URL=endpoint.url)
        await tmux.until(*CHOICES)
        await asyncio.sleep(0.5)
        await tmux.keys("1")
        await tmux.until("? The key, which is not shown")
        await asyncio.sleep(0.5)
        await tmux.type("sk-proj-secret")
        await tmux.until("> ••••••••••••••")
        await tmux.keys("Enter")
        await tmux.until("1  openai/gpt-5", "2  openai/gpt-5-mini")
        await asyncio.sleep(0.5)
        await tmux.keys("2")
        await tmux.until("openai/gpt-5-mini · default")
        assert "secret" not in await tmux.history()
    assert "openai" in (await crow("login", "--list")).out


async def test_a_newcomer_rehearses(crow: Crow, tmux: Tmux) -> None:
    await tmux.start(crow)
    await tmux.until(*CHOICES)
    await asyncio.sleep(0.5)
    await tmux.keys("3")
    await tmux.until("rehearsal · default", gone="1  With the API key")
    await tmux.type("Read the file README.md")
    await tmux.keys("Enter")
    await tmux.until("This is a rehearsal", "● Read README.md · ✓ 3 lines")


async def test_output_thoughts_and_the_plan_are_folded_and_shown(
    crow: Crow, endpoint: Endpoint, tmux: Tmux
) -> None:
    steps = [("one", "completed"), ("two", "in_progress"), ("three", "pending")]
    todos = [{"content": f"step {name}", "status": status} for name, status in steps]
    wait = "seq 40; until [ -e go ]; do sleep 0.02; done; exit 3"
    thought = [delta(reasoning_content=f"thought {n}\n") for n in range(20)]
    endpoint.play(
        stream(*thought, *calls(("TodoWrite", {"todos": todos}))[1:]),
        calls(("Bash", {"command": wait})),
        answer("Done."),
    )
    await tmux.start(crow, "--allow", "Bash")
    await tmux.until(READY)
    await tmux.type("Go")
    await tmux.keys("Enter")
    screen = await tmux.until("│ 40", "▸ step two", "☐ step three")
    assert "│ … 35 earlier lines (Ctrl-O)" in screen
    assert "│ 35\n" not in screen
    assert "∴ Thought · Ctrl-T shows it" in screen
    (crow.cwd / "go").touch()
    await tmux.until("✗ exit 3", "Done.", gone="▸ step two")
    await tmux.keys("C-t")
    await tmux.until("thought 0", "thought 19")
    await tmux.keys("C-o")
    await tmux.until("│ 12", "│ 40", whole=True)


FORBIDDEN = [b"\x1b[2J", b"\x1b[3J", b"\x1b[?1049h", b"\x1b[?1000h", b"\x1b[?1003h", b"\x1b[6n"]


async def test_the_terminal_is_left_as_it_was_and_its_scrollback_alone(
    crow: Crow, endpoint: Endpoint
) -> None:
    endpoint.play(answer("Done."))
    screen = Screen()
    process = await screen.start(crow)
    await screen.until("scripted")
    screen.type("Go\r")
    await screen.until("Done.")
    process.send_signal(signal.SIGTERM)
    assert await screen.close(process) == 143
    assert [each for each in FORBIDDEN if each in screen.shown] == []
    for on, off in ((b"\x1b[?2004h", b"\x1b[?2004l"), (b"\x1b[>1u", b"\x1b[<u")):
        assert screen.shown.rindex(on) < screen.shown.rindex(off)


async def test_plain_draws_nothing_twice(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(answer("First."), calls(TOUCH), answer("Second."))
    screen = Screen()
    process = await screen.start(crow, "--plain")
    await screen.until("\n> ")
    screen.type("one\n")
    await screen.until("First.")
    await screen.until("\n> ")
    screen.type("two\n")
    await screen.until("Enter rejects: ")
    screen.type("1\n")
    await screen.until("Second.")
    await screen.until("\n> ")
    screen.type("/exit\n")
    assert await screen.close(process) == 0
    assert b"\x1b[A" not in screen.shown
    assert (crow.cwd / "made").exists()


async def test_a_project_is_trusted_by_the_word_and_the_hooks_run_then(
    tmux: Tmux, crow: Crow, endpoint: Endpoint
) -> None:
    wanting(crow)
    endpoint.play(answer("Hello."))
    await tmux.start(crow)
    await tmux.until("? Trust", "hook at UserPromptSubmit", "Not now", "then write: trust")
    await asyncio.sleep(0.5)  # a question takes no key at first
    await tmux.keys("w")
    await tmux.type("trust")
    await tmux.until("trust")
    await tmux.keys("Enter")
    await tmux.until(READY, gone="? Trust")
    await tmux.type("hi")
    await tmux.keys("Enter")
    await tmux.until("Hello.")
    assert is_trusted(crow.cwd)
    assert (crow.cwd.parent / "seen").exists()


async def test_what_is_typed_for_something_else_trusts_no_project(tmux: Tmux, crow: Crow) -> None:
    wanting(crow)
    await tmux.start(crow)
    for line in ("fix the tests", "3", "y", "yes", "w", "a"):
        await tmux.type(line)
        await tmux.keys("Enter")
    await tmux.until("? Trust")
    await tmux.type("yes, please, with all that is in the way of it")
    await tmux.keys("Enter")
    await tmux.keys("C-c")
    await tmux.until(gone="? Trust")
    assert not is_trusted(crow.cwd)
    assert not (crow.cwd.parent / "seen").exists()


@pytest.mark.slow
async def test_a_rule_is_edited_before_it_is_kept_and_another_holds_for_the_session(
    crow: Crow, endpoint: Endpoint, tmux: Tmux
) -> None:
    endpoint.play(calls(TOUCH), calls(("Bash", {"command": "touch more"})), answer("Both."))
    endpoint.play(calls(("Bash", {"command": "rm more"})), answer("Gone."))
    endpoint.play(calls(("Bash", {"command": "rm more"})), answer("Again."))
    await tmux.start(crow)
    await tmux.until(READY)
    await tmux.type("Go")
    await tmux.keys("Enter")
    await tmux.until(
        "a  Always allow Bash(touch made)", "s  Allow Bash(touch made) in this session"
    )
    await asyncio.sleep(0.5)  # a question takes no key at first
    await tmux.keys("a")
    await tmux.until("> Bash(touch made)", "Enter keeps them")
    await tmux.keys(*["BSpace"] * 5)
    await tmux.type("*)")
    await tmux.until("> Bash(touch *)")
    await tmux.keys("Enter")
    await tmux.until("Both.")
    kept = crow.cwd / ".claude/settings.local.json"
    assert json.loads(kept.read_text("utf-8"))["permissions"]["allow"] == ["Bash(touch *)"]
    await tmux.type("Remove")
    await tmux.keys("Enter")
    await tmux.until("s  Allow Bash(rm more) in this session")
    await asyncio.sleep(0.5)
    await tmux.keys("s")
    await tmux.until("Gone.")
    await tmux.type("Once more")
    await tmux.keys("Enter")
    await tmux.until("Again.")
    assert json.loads(kept.read_text("utf-8"))["permissions"]["allow"] == ["Bash(touch *)"]


async def test_keys_are_the_ones_of_the_settings(
    crow: Crow, endpoint: Endpoint, tmux: Tmux, home: Path
) -> None:
    keys = {"stop": "f5", "queue": ["ctrl-q", "alt-q"], "mode": [], "send": "x", "expand": "ctrl-?"}
    (home / ".crow").mkdir()
    settings = {"terminal": {"keys": keys, "theme": "dark", "vi": True}}
    (home / ".crow/settings.json").write_text(json.dumps(settings), "utf-8")
    endpoint.play(half(), answer("Again."))
    await tmux.start(crow)
    await tmux.until(
        READY, "terminal.keys.send: 'x' is no key", "terminal.keys.expand: 'ctrl-?' is no key"
    )
    await tmux.type("Goo")
    await tmux.keys("Escape", "x", "Enter")  # vi's normal mode, in which x deletes
    await tmux.until("> Go\n", "Let me")
    await tmux.type("ilater")
    await tmux.keys("C-q")
    await tmux.until("⏸ later")
    await tmux.keys("F5")
    await tmux.until("! interrupted", "> later")
    assert sent(endpoint) == ["Go"]


@pytest.mark.slow
async def test_the_terminal_is_asked_for_its_background_and_a_late_answer_is_no_text(
    crow: Crow, endpoint: Endpoint
) -> None:
    endpoint.play(answer("Some `code`."))
    screen = Screen()
    process = await screen.start(crow)
    await screen.until("\x1b]11;?\x1b\\\x1b[c")
    screen.type("\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?62c")
    await screen.until("scripted")
    screen.type("G\x1b]11;rgb:0000/0000/0000\x07")
    screen.type("o\r")
    await screen.until("\x1b[38;5;30mcode")
    process.send_signal(signal.SIGTERM)
    assert await screen.close(process) == 143
    assert sent(endpoint) == ["Go"]
    assert b"rgb:" not in screen.shown


@pytest.mark.slow
async def test_a_terminal_that_says_that_it_draws_sixels_is_given_them(
    crow: Crow, endpoint: Endpoint
) -> None:
    Image.new("RGB", (8, 6), (255, 0, 0)).save(crow.cwd / "a.png")
    endpoint.play(answer("It is red."))
    screen = Screen()
    process = await screen.start(crow)
    await screen.until("\x1b[c")
    screen.type("\x1b[?62;4;22c")
    await screen.until("scripted")
    screen.type("look at a.png\r")
    for text in ('\x1bP0;1;0q"1;1;8;6#0;2;100;0;0#0!8~-\x1b\\', "PNG · 8×6", "It is red."):
        await screen.until(text)
    process.send_signal(signal.SIGTERM)
    assert await screen.close(process) == 143


async def test_the_last_line_is_what_a_command_of_the_settings_makes_of_what_is_known(
    crow: Crow, endpoint: Endpoint, tmux: Tmux, home: Path
) -> None:
    script = home / "status.py"
    script.write_text(
        "import json, sys\n"
        "told = json.load(sys.stdin)\n"
        "json.dump(told, open('told.json', 'w'))\n"
        "said = told['context_window']['current_usage']\n"
        "used = said and said['input_tokens']\n"
        "print('\\x1b[31m', told['model']['id'], '\\x1b[0m\\x1b[2J', used, '!', sep='')\n"
        "print('second line')\n",
        "utf-8",
    )
    (home / ".claude").mkdir()
    line = {"type": "command", "command": f"{sys.executable} {script}", "padding": 1}
    (home / ".claude/settings.json").write_text(json.dumps({"statusLine": line}), "utf-8")
    endpoint.play(answer("Hello."))
    await tmux.start(crow)
    await tmux.until(" scriptedNone!", " second line", gone="scripted · default")
    assert "\x1b[31mscripted" in await tmux.screen("-e")
    await tmux.type("Hi")
    await tmux.keys("Enter")
    await tmux.until("Hello.", " scripted7!")
    told = json.loads((crow.cwd / "told.json").read_text("utf-8"))
    assert told["workspace"]["current_dir"] == told["cwd"] == str(crow.cwd)


@pytest.mark.slow
async def test_a_projects_status_line_runs_only_where_the_project_is_trusted(
    crow: Crow, endpoint: Endpoint, tmux: Tmux
) -> None:
    (crow.cwd / ".claude").mkdir()
    line = {"type": "command", "command": "touch ran; echo mine"}
    (crow.cwd / ".claude/settings.json").write_text(json.dumps({"statusLine": line}), "utf-8")
    await tmux.start(crow)
    await tmux.until("? Trust", "statusLine", "touch ran")
    await asyncio.sleep(0.5)
    await tmux.keys("1")
    await tmux.until(READY)
    assert not (crow.cwd / "ran").exists()
    await tmux.keys("C-d")
    await tmux.until("ended: 0")
    assert (await crow("trust", "--yes")).status == 0
    assert not (crow.cwd / "ran").exists()


@pytest.mark.slow
async def test_a_line_is_remembered_where_the_person_wants_it(
    crow: Crow, endpoint: Endpoint, tmux: Tmux, home: Path
) -> None:
    (crow.cwd / "CLAUDE.md").write_text("# Rules\n\n- one", "utf-8")
    endpoint.play(answer("Yes."), answer("Markdown."))
    await tmux.start(crow)
    await tmux.until(READY)
    for key, place in (("1", "remembered in CLAUDE.md"), ("2", "remembered in ~/.crow/AGENTS.md")):
        await tmux.type("# use tabs")
        await tmux.keys("Enter")
        await tmux.until("Where is this to be remembered?", "1  CLAUDE.md", "2  ~/.crow/AGENTS.md")
        await asyncio.sleep(0.5)  # a question takes no key at first
        await tmux.keys(key)
        await tmux.until(place)
    assert (crow.cwd / "CLAUDE.md").read_text("utf-8") == "# Rules\n\n- one\n- use tabs\n"
    assert (home / ".crow/AGENTS.md").read_text("utf-8") == "- use tabs\n"
    await tmux.type("Heard?")
    await tmux.keys("Enter")
    await tmux.until("Yes.")
    assert "added to the instructions" in json.dumps(endpoint.requests[-1].body)
    await tmux.type("## Title")
    await tmux.keys("Enter")
    await tmux.until("Markdown.")


async def test_pictures_go_along_by_path_by_drag_and_from_the_clipboard(
    crow: Crow, endpoint: Endpoint, tmux: Tmux, tmp_path: Path
) -> None:
    (crow.cwd / "shot one.png").write_bytes(PNG)
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "wl-paste").write_text(f"#!/bin/sh\ncat '{crow.cwd}/shot one.png'\n", "utf-8")
    (tools / "wl-paste").chmod(0o755)
    endpoint.play(answer("A dot."), answer("The same."))
    await tmux.start(crow, PATH=f"{tools}:{os.environ['PATH']}", TMPDIR=str(tmp_path))
    await tmux.until(READY)
    await tmux.type("What is ")
    await tmux.paste(f"'{crow.cwd}/shot one.png'")
    await tmux.keys("Enter")
    await tmux.until("▣ PNG · 2×3", "A dot.")
    url = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    told, picture = endpoint.requests[0].body["messages"][-1]["content"]
    assert told["text"] == f"What is '{crow.cwd}/shot one.png'"
    assert picture == {"type": "image_url", "image_url": {"url": url}}
    await tmux.type("And ")
    await tmux.keys("C-v")
    await tmux.until("> And /", "/crow-")
    await tmux.keys("Enter")
    await tmux.until("The same.")
    assert endpoint.requests[1].body["messages"][-1]["content"][1] == picture
