"""``crow run``: a prompt goes in, the model is asked, tools run, and what happened is told."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Crow, calls

from crow.testing.endpoint import HANG, Endpoint, answer, begin, delta, event, piece

READ = ("Read", {"file_path": "README.md"})
WRITE = ("Write", {"file_path": "new.txt", "content": "one\ntwo\n"})


async def test_a_notice_that_comes_while_a_call_is_on_stands_within_its_card(
    crow: Crow, endpoint: Endpoint
) -> None:
    (crow.cwd / "guard.py").write_text(
        "async def before_run(ctx):\n    await ctx.ui.notify('welcome')\n"
        "async def before_tool(ctx):\n    await ctx.ui.notify('looked at it')\n"
    )
    endpoint.play(calls(("Read", {"file_path": "README.md"})), answer("Done."))
    ended = await crow("run", "--extension", "guard.py", "go")
    assert "welcome\n● Read README.md\n  │ looked at it\n  └ " in ended.err


async def test_a_hook_that_refuses_the_prompt_is_heard_once(
    crow: Crow, endpoint: Endpoint, tmp_path: Path
) -> None:
    extension = tmp_path / "strict.py"
    extension.write_text("from crow import Deny\n\ndef before_run():\n    return Deny('not now')\n")
    ended = await crow("run", "--extension", str(extension), "hello")
    assert (ended.status, ended.out) == (1, "")
    assert ended.complaint == "refused by strict: not now"


async def test_the_text_is_the_output_and_tool_calls_are_told_beside_it_in_short_lines(
    crow: Crow, endpoint: Endpoint
) -> None:
    endpoint.play(calls(READ, text="I look."), answer("It does things."))
    ended = await crow("run", "What is this?")
    assert ended.status == 0
    assert ended.out == "I look.\n\nIt does things.\n"
    assert ended.err == "● Read README.md\n  └ 3 lines\n"


async def test_the_model_reads_what_the_tool_returned(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(calls(READ), answer("ok"))
    await crow("run", "What is this?")
    first, second = (request.body["messages"] for request in endpoint.requests)
    assert first[-1] == {"role": "user", "content": "What is this?"}
    assert second[-1]["role"] == "tool"
    assert "It does things." in second[-1]["content"]


async def test_a_change_is_shown_as_a_short_diff(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(calls(WRITE), answer("Done."))
    ended = await crow("run", "Write it", "--allow", "Edit")
    assert ended.err == "● Write new.txt\n  └ created, +2 -0\n    +one\n    +two\n"
    assert ended.out == "Done.\n"
    assert (crow.cwd / "new.txt").read_text("utf-8") == "one\ntwo\n"


@pytest.mark.slow
async def test_what_nobody_allows_is_denied_where_nobody_can_be_asked(
    crow: Crow, endpoint: Endpoint
) -> None:
    endpoint.play(calls(("Bash", {"command": "touch made"})), answer("I may not."))
    ended = await crow("run", "Make it")
    assert ended.status == 0
    *told, complaint = ended.err.splitlines()
    assert "\n".join(told).startswith("● Bash touch made\n  └ ✗ denied: ")
    missing = "crow: Bash needed permission and nobody could be asked: "
    assert complaint.startswith(f"{missing}allow it ")
    assert not (crow.cwd / "made").exists()
    endpoint.play(calls(("Bash", {"command": "rm -rf /"})), answer("I may not."))
    ended = await crow("run", "Remove it")
    assert ended.err.endswith(f"{missing}run in a terminal\n")


@pytest.mark.slow
async def test_an_allow_rule_lets_a_call_run_and_a_deny_rule_beats_it(
    crow: Crow, endpoint: Endpoint
) -> None:
    endpoint.play(calls(("Bash", {"command": "touch made"})), answer("Done."))
    await crow("run", "Make it", "--allow", "Bash(touch *)")
    assert (crow.cwd / "made").exists()
    endpoint.play(calls(("Bash", {"command": "touch more"})), answer("No."))
    ended = await crow("run", "More", "--allow", "Bash(touch *)", "--deny", "Bash(touch more)")
    assert "denied" in ended.err
    assert not (crow.cwd / "more").exists()


async def test_the_prompt_can_come_from_standard_input(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(answer("one"), answer("two"))
    await crow("run", stdin="from a pipe")
    await crow("run", "-", stdin="from a dash")
    prompts = [request.body["messages"][-1]["content"] for request in endpoint.requests]
    assert prompts == ["from a pipe", "from a dash"]


async def test_quiet_writes_the_answer_and_nothing_else(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(calls(READ, text="I look."), answer("It does things."))
    ended = await crow("run", "-q", "What is this?")
    assert (ended.out, ended.err) == ("It does things.\n", "")


async def test_sequences_of_model_and_tools_do_not_reach_the_terminal(
    crow: Crow, endpoint: Endpoint
) -> None:
    (crow.cwd / "evil.txt").write_text("\x1b]0;owned\x07\x1b[2Jx", "utf-8")
    loud = ("Bash", {"command": "cat evil.txt"})
    endpoint.play(calls(loud, text="\x1b[31mred\x1b]52;c;x\x07"), answer("\x9b2Jend"))
    ended = await crow("run", "Show", "--allow", "Bash(cat *)", FORCE_COLOR="")
    assert [char for char in ended.out if ord(char) < 32 and char != "\n"] == []
    assert "\x9b" not in ended.out
    assert ended.out.startswith("red\n")


@pytest.mark.slow
async def test_a_run_goes_on_where_it_was(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(answer("I am Crow."), answer("Crow."), answer("Yes."))
    first = await crow("run", "--json", "Who are you?")
    session_id = first.events[0]["session_id"]
    await crow("run", "--resume", session_id[:8], "Say it again")
    await crow("run", "--continue", "Really?")
    spoken = [
        message["content"]
        for message in endpoint.requests[-1].body["messages"]
        if message["role"] in ("user", "assistant")
    ]
    assert spoken == ["Who are you?", "I am Crow.", "Say it again", "Crow.", "Really?"]


@pytest.mark.slow
async def test_a_killed_run_goes_on_with_a_whole_history(crow: Crow, endpoint: Endpoint) -> None:
    sleep = ("Bash", {"command": "touch started; sleep 60"})
    endpoint.play(calls(READ), calls(sleep, READ), answer("Here again."))
    process = await crow.start("run", "--json", "--allow", "Bash", "Work")
    assert process.stdout is not None
    async for line in process.stdout:
        if b'"tool_started"' in line and b"sleep" in line:
            break
    process.kill()
    await process.wait()

    ended = await crow("run", "--continue", "Go on")

    assert (ended.status, ended.out) == (0, "Here again.\n")
    history = [m for m in endpoint.requests[-1].body["messages"] if m["role"] != "system"]
    roles = [message["role"] for message in history]
    assert roles == ["user", "assistant", "tool", "assistant", "tool", "tool", "user"]
    asked = [call["id"] for message in history for call in message.get("tool_calls", ())]
    answered = [m["tool_call_id"] for m in history if m["role"] == "tool"]
    assert answered == asked
    assert "It does things." in history[2]["content"]
    assert "interrupted" in history[4]["content"]
    assert history[-1]["content"] == "Go on"


async def test_ctrl_c_ends_the_run_with_a_whole_history_and_status_130(
    crow: Crow, endpoint: Endpoint
) -> None:
    endpoint.play([begin(), piece(event(delta(content="Let me"))), HANG], answer("Back."))
    process = await crow.start("run", "--json", "Think")
    assert process.stdout is not None
    async for line in process.stdout:
        if b"Let me" in line:
            break
    process.send_signal(signal.SIGINT)
    out, err = await process.communicate()
    assert process.returncode == 130
    assert b'"stop_reason": "cancelled"' in out
    assert b"crow: interrupted; crow run --resume" in err

    await crow("run", "--continue", "And?")
    spoken = [m["content"] for m in endpoint.requests[-1].body["messages"] if m["role"] != "system"]
    assert spoken == ["Think", "Let me", "And?"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("is_ignored", [False, True], ids=["", "behind nohup"])
async def test_a_terminal_that_is_closed_ends_the_run_with_a_whole_history(
    crow: Crow, endpoint: Endpoint, is_ignored: bool
) -> None:
    endpoint.play([begin(), piece(event(delta(content="Let me"))), HANG], answer("Back."))
    given = signal.signal(signal.SIGHUP, signal.SIG_IGN if is_ignored else signal.SIG_DFL)
    try:
        process = await crow.start("run", "Think")
    finally:
        signal.signal(signal.SIGHUP, given)
    assert process.stdout is not None
    await process.stdout.readuntil(b"Let me")
    process.send_signal(signal.SIGHUP)
    if is_ignored:
        process.send_signal(signal.SIGTERM)
    _, err = await process.communicate()
    assert process.returncode == 128 + (signal.SIGTERM if is_ignored else signal.SIGHUP)
    assert b"crow: interrupted; crow run --resume" in err

    await crow("run", "--continue", "And?")
    spoken = [m["content"] for m in endpoint.requests[-1].body["messages"] if m["role"] != "system"]
    assert spoken == ["Think", "Let me", "And?"]


DEAF = """
import signal, threading

def on_session_start():
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
"""


def sleeps(thread: int) -> bool:
    """True while a thread waits for something."""
    return Path(f"/proc/{thread}/stat").read_text().rpartition(")")[2].split()[0] == "S"


@pytest.mark.variants(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says in /proc who sleeps")
async def test_a_signal_is_heard_that_the_system_gives_to_another_thread(
    crow: Crow, endpoint: Endpoint, tmp_path: Path, number: signal.Signals
) -> None:
    deaf = tmp_path / "deaf.py"
    deaf.write_text(DEAF, "utf-8")
    endpoint.play([begin(), piece(event(delta(content="Let me"))), HANG])
    process = await crow.start("run", "--extension", str(deaf), "Think")
    assert process.stdout is not None
    await process.stdout.readuntil(b"Let me")
    while not sleeps(process.pid):  # noqa: ASYNC110 - no event tells of it
        await asyncio.sleep(0.01)
    process.send_signal(number)
    _, err = await process.communicate()
    assert process.returncode == 128 + number
    assert b"crow: interrupted; crow run --resume" in err


async def test_ctrl_c_ends_a_run_whose_session_is_being_opened(
    crow: Crow, endpoint: Endpoint, tmp_path: Path
) -> None:
    slow = tmp_path / "slow.py"
    slow.write_text(
        "import asyncio\n"
        "async def on_session_start(ctx):\n"
        "    print('opening', flush=True)\n"
        "    await asyncio.sleep(1000)\n",
        "utf-8",
    )
    process = await crow.start("run", "--extension", str(slow), "Think")
    assert process.stdout is not None
    await process.stdout.readuntil(b"opening")
    process.send_signal(signal.SIGINT)
    await process.communicate()
    assert process.returncode == 130
    assert endpoint.requests == []


async def test_a_second_ctrl_c_ends_what_does_not_want_to_end(
    crow: Crow, endpoint: Endpoint, tmp_path: Path
) -> None:
    stubborn = tmp_path / "stubborn.py"
    stubborn.write_text(
        "import time\n"
        "def on_session_end(ctx):\n"
        "    print('ending', flush=True)\n"
        "    time.sleep(1000)\n",
        "utf-8",
    )
    endpoint.play([begin(), piece(event(delta(content="Let me"))), HANG])
    process = await crow.start("run", "--extension", str(stubborn), "Think")
    assert process.stdout is not None
    await process.stdout.readuntil(b"Let me")
    process.send_signal(signal.SIGINT)
    await process.stdout.readuntil(b"ending")
    process.send_signal(signal.SIGINT)
    await process.communicate()
    assert process.returncode == 130


@pytest.mark.slow
async def test_a_reader_that_leaves_ends_the_run(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(calls(READ, text="I look."), answer("never seen"))
    reading, writing = os.pipe()
    process = await asyncio.create_subprocess_exec(
        *crow.command("run", "x"),
        cwd=crow.cwd,
        env={**os.environ, **crow.env},
        stdout=writing,
        stderr=asyncio.subprocess.PIPE,
    )
    os.close(reading)
    os.close(writing)
    _, err = await process.communicate()
    assert err == b""
    assert process.returncode == 141
    assert len(endpoint.requests) == 1


async def test_what_a_sub_agent_does_is_told_while_it_works(crow: Crow, endpoint: Endpoint) -> None:
    task = ("Agent", {"description": "Read", "prompt": "Read the README."})
    endpoint.play(calls(task), calls(READ), answer("It does things."), answer("Done."))
    ended = await crow("run", "Find out")
    told = "● Agent Read\n  │ Read README.md\n  └ It does things.\n"
    assert (ended.out, ended.err) == ("Done.\n", told)


@pytest.mark.variants(1)
@pytest.mark.parametrize("where", ["home", "project"])
async def test_a_session_works_in_the_directories_that_settings_name_now(
    crow: Crow, endpoint: Endpoint, home: Path, tmp_path: Path, where: str
) -> None:
    named, added = tmp_path / "named", tmp_path / "added"
    for folder in (named, added):
        folder.mkdir()
        (folder / "a.txt").write_text(f"{folder.name} text")
    settings = (home if where == "home" else crow.cwd) / ".claude/settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"permissions": {"additionalDirectories": [str(named)]}}))
    if where == "project":
        assert (await crow("trust", "--yes")).status == 0
    reads = [("Read", {"file_path": str(folder / "a.txt")}) for folder in (named, added)]
    told: list[list[str]] = []
    for words in (["--add-dir", str(added)], ["--continue"], ["--continue"]):
        endpoint.play(calls(*reads), answer("Done."))
        await crow("run", *words, "-q", "Go")
        asked = endpoint.requests[-1].body["messages"]
        told.append([str(m["content"]) for m in asked[-2:]])
        assert (f"Additional directory: {named}" in str(asked[0])) is (len(told) < 3)
        if len(told) == 2 and where == "home":
            settings.write_text("{}")
        elif len(told) == 2:  # the project is not trusted any more
            settings.write_text(settings.read_text() + " ")
    assert ["named text" in first for first, _ in told] == [True, True, False]
    assert all("added text" in second for _, second in told)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["home", "project", "start"])
async def test_a_session_goes_on_in_the_mode_of_todays_settings_unless_its_user_chose_another(
    crow: Crow, endpoint: Endpoint, home: Path, tmp_path: Path, where: str
) -> None:
    places = {"home": home, "project": crow.cwd, "start": tmp_path}
    settings = places[where] / ".claude/settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"permissions": {"defaultMode": "acceptEdits"}}))
    if where == "project":
        assert (await crow("trust", "--yes")).status == 0
    said = ["--settings", str(settings)] if where == "start" else []
    wrote: list[bool] = []
    for words in (said, ["--continue", *said], ["--continue"], ["--mode", "acceptEdits"],
                  ["--continue"]):  # fmt: skip
        endpoint.play(calls(WRITE), answer("Done."))
        await crow("run", *words, "-q", "Go")
        wrote.append((crow.cwd / "new.txt").exists())
        (crow.cwd / "new.txt").unlink(missing_ok=True)
        if len(wrote) == 2 and where == "home":
            settings.write_text("{}")
        elif len(wrote) == 2 and where == "project":  # which is not trusted any more
            settings.write_text(settings.read_text() + " ")
    assert wrote == [True, True, False, True, True]
