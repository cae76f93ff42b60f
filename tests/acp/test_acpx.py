"""``crow acp`` driven by acpx, a headless client from npm, through every command that it has."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.processes import until

CROW = str(Path(sys.executable).with_name("crow"))
CLIENT = Path(__file__).with_name("node") / "node_modules/acpx/dist"
GROUPS = ("sessions", "config", "flow")
LOCAL = {"config init", "config show"}
"""Commands that start no agent."""
FLOW = """
import {{ acp, defineFlow }} from "{library}";
const prompt = async () => "Read the file a.txt";
const ask = acp({{ session: {{ handle: "main" }}, prompt, parse: (text) => ({{ text }}) }});
export default defineFlow({{ name: "one", startAt: "ask", nodes: {{ ask }}, edges: [] }});
"""

pytestmark = [pytest.mark.node, pytest.mark.slow, pytest.mark.timeout(240)]


class Acpx:
    """The client at work in one directory; ``driven`` are the commands that were used."""

    def __init__(self, node: str, cwd: Path, home: Path) -> None:
        self.cwd = cwd
        self.driven: set[str] = set()
        self._program = [node, str(CLIENT / "cli.js")]
        self._records = home / ".acpx"
        settings = {"agents": {"crow": {"command": f"{CROW} acp"}}, "defaultAgent": "crow"}
        (cwd / ".acpxrc.json").write_text(json.dumps({**settings, "ttl": 120}), "utf-8")

    async def __call__(self, *words: str, status: int = 0) -> str:
        """Run a command; what it printed."""
        self.driven.add(command_of(words))
        process = await self.start(*words)
        out, err = await process.communicate()
        assert process.returncode == status, (words, out.decode(), err.decode())
        return out.decode() if status == 0 else out.decode() + err.decode()

    async def start(self, *words: str) -> asyncio.subprocess.Process:
        """Start a command."""
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            *self._program, *words, cwd=self.cwd, stdin=asyncio.subprocess.DEVNULL, stdout=pipe,
            stderr=pipe,
        )  # fmt: skip

    async def messages(self, *words: str, status: int = 0) -> list[dict[str, Any]]:
        """Run a command; what it and the agent said to each other."""
        said = await self("--format", "json", *words, status=status)
        return [json.loads(line) for line in said.splitlines() if line.startswith("{")]

    async def ended(self) -> None:
        """End what acpx left running to be quick the next time."""
        for lock in self._records.glob("queues/*.lock"):
            with suppress(ProcessLookupError):
                os.kill(json.loads(lock.read_text("utf-8"))["pid"], signal.SIGTERM)


def command_of(words: tuple[str, ...]) -> str:
    """The command, without options and arguments."""
    plain = [word for word in words if not word.startswith("-") and word not in ("json", "crow")]
    return " ".join(plain[: 2 if plain[0] in GROUPS else 1])


@pytest.fixture
async def acpx(node: str, tmp_path: Path, home: Path) -> AsyncIterator[Acpx]:
    (tmp_path / "a.txt").write_text("one\n")
    client = Acpx(node, tmp_path, home)
    yield client
    await client.ended()


def methods(messages: list[dict[str, Any]]) -> list[str]:
    """The methods that were called, in order."""
    return [message["method"] for message in messages if "method" in message]


def stop_reasons(messages: list[dict[str, Any]]) -> list[str]:
    """How prompts ended."""
    results = [message.get("result") for message in messages]
    return [each["stopReason"] for each in results if each and "stopReason" in each]


async def commands(acpx: Acpx) -> set[str]:
    """Every command that the client's help names, those for one named agent apart."""
    listed = re.compile(r"^  ([a-z-]+)[ |]", re.MULTILINE)

    async def named(*words: str) -> set[str]:
        process = await acpx.start(*words, "--help")
        said = (await process.communicate())[0].decode()
        table = said.partition("\nCommands:\n")[2].partition("\nExamples:")[0]
        shown = [line for line in table.splitlines() if not re.search(r" Use \S+ agent$", line)]
        return set(listed.findall("\n".join(shown))) - {"help"}

    single = await named()
    grouped = {f"{group} {name}" for group in GROUPS for name in await named(group)}
    return (single - set(GROUPS)) | grouped


async def test_every_command_of_the_client_works(acpx: Acpx) -> None:
    library = CLIENT / "flows.js"
    (acpx.cwd / "one.flow.mjs").write_text(FLOW.format(library=library), "utf-8")
    session = (await acpx("sessions", "new", "--name", "x")).strip()
    assert "status: " in await acpx("status", "-s", "x")
    read = await acpx.messages("prompt", "-s", "x", "Read the file a.txt")
    assert "session/resume" in methods(read)
    assert stop_reasons(read) == ["end_turn"]

    assert "mode set: plan" in await acpx("set-mode", "-s", "x", "plan")
    assert "acceptEdits" in await acpx("set", "-s", "x", "mode", "acceptEdits")
    assert "rehearsal" in await acpx("set", "-s", "x", "model", "rehearsal")
    await acpx("--approve-all", "prompt", "-s", "x", "Create a file called b.txt")
    assert (acpx.cwd / "b.txt").exists()

    assert session in await acpx("sessions", "list", "--filter-cwd", str(acpx.cwd))
    assert session not in await acpx("sessions", "list", "--filter-cwd", "/nowhere")
    assert session in await acpx("sessions", "ensure", "--name", "x")
    assert session in await acpx("sessions", "show", "x")
    assert "Create a file called b.txt" in await acpx("sessions", "history", "x")
    assert "Read the file a.txt" in await acpx("sessions", "read", "x")
    assert "nothing to cancel" in await acpx("cancel", "-s", "x")

    watching = await acpx.start("--format", "json", "sessions", "watch", "-s", "x")
    assert watching.stdout is not None
    assert "Read the file a.txt" in (await watching.stdout.readuntil(b"end_turn")).decode()
    watching.terminate()
    await watching.communicate()
    acpx.driven.add("sessions watch")

    alone = await acpx.messages("exec", "--config-option", "mode=plan", "Read the file a.txt")
    assert {"session/new", "session/set_config_option"} <= set(methods(alone))
    assert stop_reasons(alone) == ["end_turn"]
    (row,) = json.loads(await acpx("compare", "crow", "--json", "Read the file a.txt"))
    assert (row["status"], row["stop_reason"]) == ("ok", "end_turn")
    assert "one" in await acpx("flow", "run", "one.flow.mjs")

    await acpx("sessions", "close", "x")
    await acpx("sessions", "export", "x", "--output", "x.json")
    await acpx("sessions", "prune", "--include-history")
    await acpx("sessions", "import", "x.json", "--name", "y")
    again = await acpx.messages("prompt", "-s", "y", "Read the file b.txt")
    assert "session/new" not in methods(again)
    assert stop_reasons(again) == ["end_turn"]
    assert await commands(acpx) - LOCAL == acpx.driven


@pytest.mark.rule("a session that is still empty is resumed", "conformance with others' clients")
async def test_a_session_that_is_still_empty_is_resumed_by_the_next_process(acpx: Acpx) -> None:
    session = (await acpx("sessions", "new")).strip()
    said = await acpx.messages("prompt", "Read the file a.txt")
    (resumed,) = [message for message in said if message.get("method") == "session/resume"]
    assert resumed["params"]["sessionId"] == session
    assert "session/new" not in methods(said)
    assert stop_reasons(said) == ["end_turn"]


async def test_what_the_client_denies_is_not_done(acpx: Acpx) -> None:
    await acpx("sessions", "new")
    await acpx("--deny-all", "prompt", "Create a file called b.txt", status=5)
    await acpx("set", "mode", "acceptEdits")
    denied = await acpx("--deny-all", "prompt", "Create a file called b.txt", status=5)
    assert "refused" in denied, denied
    assert not (acpx.cwd / "b.txt").exists()


async def test_a_choice_that_is_not_on_offer_is_an_error_that_says_what_is(acpx: Acpx) -> None:
    await acpx("sessions", "new")
    (refused,) = [
        message["error"]
        for message in await acpx.messages("set-mode", "nap", status=1)
        if "error" in message
    ]
    assert "acceptEdits" in json.dumps(refused)


@pytest.mark.parametrize("options", [[], ["--no-terminal"]], ids=["its terminal", "our own"])
async def test_a_command_is_cancelled_and_what_waits_behind_it_is_not_lost(
    acpx: Acpx, options: list[str]
) -> None:
    await acpx("sessions", "new")
    running = await acpx.start("--approve-all", *options, "prompt", "Run `touch on; sleep 600`")
    await until((acpx.cwd / "on").exists)
    await acpx("--approve-all", "prompt", "--no-wait", "Run `touch waited`")
    assert "cancel requested" in await acpx("cancel")
    out, _ = await running.communicate()
    assert "[done] cancelled" in out.decode()
    await until((acpx.cwd / "waited").exists)
