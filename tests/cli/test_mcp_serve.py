"""`crow mcp serve`, as the official library's client drives it, in both of its protocols."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, ElicitRequestParams, ElicitResult
from tests.cli.conftest import Crow, calls

from crow.testing.endpoint import Endpoint, answer

Mode = Literal["auto", "legacy"]
MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])


class User:
    """Whoever sits at the client, and always gives one answer."""

    def __init__(self, said: str) -> None:
        self.said = said
        self.asked: list[str] = []

    async def __call__(self, context: Any, params: ElicitRequestParams) -> ElicitResult:
        self.asked.append(params.message)
        if not self.said:
            return ElicitResult(action="cancel")
        return ElicitResult(action="accept", content={"answer": self.said})


@asynccontextmanager
async def served(
    crow: Crow, mode: Mode = "auto", user: User | None = None, *argv: str
) -> AsyncGenerator[Client]:
    """A client of a server that works in the project."""
    command, *args = crow.command("mcp", "serve", *argv)
    told = {**os.environ, **crow.env}
    server = StdioServerParameters(command=command, args=args, cwd=crow.cwd, env=told)
    async with Client(server, mode=mode, elicitation_callback=user) as client:
        yield client


def text_of(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.slow)])
@pytest.mark.slow
async def test_its_tools_are_asked_about_at_the_client_and_share_what_was_read(
    crow: Crow, endpoint: Endpoint, mode: Mode
) -> None:
    crow.use(endpoint)
    user = User("Allow once")
    path = crow.cwd / "README.md"
    change = {"file_path": str(path), "old_string": "# Thing", "new_string": "# Other"}
    async with served(crow, mode, user) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert {"run", "Read", "Edit", "Bash"} <= {*names}
        assert "# Thing" in text_of(await client.call_tool("Read", {"file_path": str(path)}))
        assert user.asked == []
        edited = await client.call_tool("Edit", change)
        assert not edited.is_error, text_of(edited)
        assert path.read_text("utf-8").startswith("# Other")
        [asked] = user.asked
        assert "README.md" in asked
        unknown = await client.call_tool("Raed", {})
        assert unknown.is_error
        assert "did you mean Read?" in text_of(unknown)


@MODES
@pytest.mark.parametrize("user", [None, User("Reject"), User("")], ids=["none", "no", "cancel"])
@pytest.mark.slow
async def test_nothing_is_written_without_a_yes(
    crow: Crow, endpoint: Endpoint, mode: Mode, user: User | None
) -> None:
    crow.use(endpoint)
    path = crow.cwd / "new.txt"
    async with served(crow, mode, user) as client:
        refused = await client.call_tool("Write", {"file_path": str(path), "content": "x"})
    assert refused.is_error
    assert "permission" in text_of(refused) or "rejected" in text_of(refused)
    assert not path.exists()


@pytest.mark.slow
async def test_questions_of_calls_at_the_same_time_are_those_of_their_calls(
    crow: Crow, endpoint: Endpoint
) -> None:
    crow.use(endpoint)
    user = User("Allow once")
    paths = [crow.cwd / f"{number}.txt" for number in range(4)]
    async with served(crow, "auto", user) as client:
        wanted = [{"file_path": str(path), "content": path.name} for path in paths]
        ended = await asyncio.gather(*(client.call_tool("Write", args) for args in wanted))
    assert [each.is_error for each in ended] == [False] * 4
    assert [path.read_text("utf-8") for path in paths] == [path.name for path in paths]
    assert len(user.asked) == 4


ASKER = """
from crow import Deny, hook

class Asker:
    name = "asker"

    @hook("before_tool", tools={"Read"})
    async def ask(self, ctx):
        said = await ctx.ui.select("Which " + ctx.args["file_path"][-5:], ("old", "new"))
        return Deny(f"{said} {ctx.args['file_path'][-5:]}")
"""


FORM = """
from crow import Deny, hook
from crow.events import Form

class Asker:
    name = "asker"

    @hook("before_tool", tools={"Read"})
    async def ask(self, ctx):
        fields = {"size": {"type": "integer", "maximum": 9}, "name": {"type": "string"}}
        said = await ctx.ui.fill_in(Form("Which?", {"type": "object", "properties": fields}))
        return Deny(f"{said.action} {dict(said.content)}")
"""


@MODES
@pytest.mark.slow
async def test_a_form_is_passed_on_as_it_is(crow: Crow, endpoint: Endpoint, mode: Mode) -> None:
    crow.use(endpoint)
    extension = crow.cwd / "asker.py"
    extension.write_text(FORM)
    asked: list[Any] = []

    async def user(context: Any, params: Any) -> ElicitResult:
        asked.append(params.requested_schema["properties"])
        return ElicitResult(action="accept", content={"size": 3, "name": "Ann"})

    told: Any = user
    async with served(crow, mode, told, "--extension", str(extension)) as client:
        ended = await client.call_tool("Read", {"file_path": str(crow.cwd / "0.txt")})
    assert "accept {'size': 3, 'name': 'Ann'}" in text_of(ended)
    assert asked == [{"size": {"type": "integer", "maximum": 9}, "name": {"type": "string"}}]


class Chooser:
    """A user who answers when all have asked, to each what only that one should hear."""

    def __init__(self, count: int) -> None:
        self.left = count
        self.all_asked = asyncio.Event()

    async def __call__(self, context: Any, params: ElicitRequestParams) -> ElicitResult:
        self.left -= 1
        if not self.left:
            self.all_asked.set()
        await self.all_asked.wait()
        said = "new" if "1.txt" in params.message else "old"
        return ElicitResult(action="accept", content={"answer": said})


@pytest.mark.slow
async def test_what_a_hook_asks_at_a_call_is_asked_of_who_made_that_call(
    crow: Crow, endpoint: Endpoint
) -> None:
    crow.use(endpoint)
    extension = crow.cwd / "asker.py"
    extension.write_text(ASKER)
    user: Any = Chooser(2)
    async with served(crow, "auto", user, "--extension", str(extension)) as client:
        wanted = [{"file_path": str(crow.cwd / name)} for name in ("0.txt", "1.txt")]
        ended = await asyncio.gather(*(client.call_tool("Read", args) for args in wanted))
    told = [text_of(each) for each in ended]
    assert "old 0.txt" in told[0]
    assert "new 1.txt" in told[1]


@pytest.mark.slow
async def test_calls_whose_questions_nobody_answers_are_not_kept_for_ever(
    crow: Crow, endpoint: Endpoint
) -> None:
    crow.use(endpoint)
    async with served(crow, "auto", User("Reject")) as client:
        states: list[str] = []
        for number in range(101):
            put_off: Any = await client.session.call_tool(
                "Write",
                {"file_path": str(crow.cwd / f"{number}.txt"), "content": "x"},
                allow_input_required=True,
            )
            states.append(put_off.request_state)
        args = {"file_path": str(crow.cwd / "0.txt"), "content": "x"}
        late = await client.session.call_tool("Write", args, request_state=states[0])
        assert "no call waits for this answer" in text_of(late)


@MODES
@pytest.mark.slow
async def test_a_prompt_is_run_and_gone_on_with_and_asks_at_the_client(
    crow: Crow, endpoint: Endpoint, mode: Mode
) -> None:
    crow.use(endpoint)
    path = str(crow.cwd / "made.txt")
    endpoint.play(calls(("Write", {"file_path": path, "content": "hi"})), answer("Made."))
    user, told = User("Allow once"), list[str]()

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    async with served(crow, mode, user) as client:
        made = await client.call_tool("run", {"prompt": "Make it."}, progress_callback=tell)
        assert made.structured_content is not None
        assert made.structured_content["text"] == "Made."
        assert len(user.asked) == 1
        endpoint.play(answer("As I said."))
        more = {"prompt": "Sure?", "session": made.structured_content["session"]}
        assert "As I said." in text_of(await client.call_tool("run", more))
        assert "Make it." in json.dumps(endpoint.requests[-1].body["messages"])
        wrong = await client.call_tool("run", {"prompt": "Hm?", "session": "none"})
        assert wrong.is_error
    assert any("made.txt" in message for message in told)


@pytest.mark.slow
async def test_a_call_that_is_cancelled_ends_its_command(crow: Crow, endpoint: Endpoint) -> None:
    crow.use(endpoint)
    begun = asyncio.Event()
    fifo = crow.cwd / "fifo"
    os.mkfifo(fifo)

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        begun.set()

    async with served(crow, "auto", None, "--allow", "Bash") as client:
        command = {"command": f"exec 3>{fifo}; echo up >&3; exec sleep 1000"}
        call = asyncio.ensure_future(client.call_tool("Bash", command, progress_callback=tell))
        await begun.wait()
        reading = await asyncio.to_thread(fifo.open, "rb")
        with reading:
            assert await asyncio.to_thread(reading.readline) == b"up\n"
            call.cancel()
            assert await asyncio.to_thread(reading.read) == b""  # nobody holds the other end
        said = await client.call_tool("Read", {"file_path": str(crow.cwd / "README.md")})
        assert not said.is_error


@pytest.mark.slow
async def test_a_session_of_elsewhere_or_of_a_freer_mode_lends_a_client_nothing(
    crow: Crow, endpoint: Endpoint, tmp_path: Path
) -> None:
    crow.use(endpoint)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    endpoint.play(answer("One."), answer("Two."))
    for cwd in (crow.cwd, elsewhere):
        wanted = ("run", "--dangerously-skip-permissions", "--cwd", str(cwd), "Hello")
        process = await asyncio.create_subprocess_exec(
            *crow.command(*wanted),
            env={**os.environ, **crow.env},
            cwd=crow.cwd,
            stdin=asyncio.subprocess.DEVNULL,
        )
        assert await process.wait() == 0
    listed = await asyncio.create_subprocess_exec(
        *crow.command("sessions", "--all", "--json"),
        env={**os.environ, **crow.env},
        cwd=crow.cwd,
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await listed.communicate()
    known = {row["cwd"]: row["id"] for row in map(json.loads, out.splitlines())}
    endpoint.play(calls(("Bash", {"command": "touch made"})), answer("Refused."))
    async with served(crow) as client:
        far = await client.call_tool("run", {"prompt": "Go", "session": known[str(elsewhere)]})
        assert "there is no session" in text_of(far)
        near = await client.call_tool("run", {"prompt": "Go", "session": known[str(crow.cwd)]})
        assert text_of(near).startswith("Refused.")
    assert not (crow.cwd / "made").exists()
