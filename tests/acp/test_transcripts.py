"""Whole conversations, both ways, as they are recorded in ``transcripts/``.

The agent is the one of ``crow acp``, with a scripted model. After a change that is meant:
``.venv/bin/pytest tests/acp/test_transcripts.py --inline-snapshot=create,fix``; read the diff.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from acp import RequestError
from inline_snapshot import external_file

from crow import Agent, Answer, tool
from crow._version import __version__
from crow.app import build
from crow.core.errors import ModelError
from crow.core.events import Compacted, Retrying
from crow.core.messages import Usage
from crow.core.ports.tool import ToolEnvironment
from crow.testing import FakeEditor, ScriptedModel, call, delay, text
from crow.testing.model import Line
from crow.testing.transcript import transcript

FOLDER = Path(__file__).with_name("transcripts")
HERE = "transcripts"
FOREVER = 3600
PICTURE = {"type": "image", "mimeType": "image/png", "data": "aGk="}


class Stage:
    """One conversation: a folder, an agent, an editor."""

    def __init__(self, cwd: Path, home: Path) -> None:
        self.cwd = cwd
        self.editor = FakeEditor()
        self.model = ScriptedModel()
        self._names = {str(cwd): "<cwd>", str(home): "<home>", __version__: "<version>"}
        self._opened = 0

    def file(self, name: str, content: str) -> str:
        """A file of the folder; its path."""
        path = self.cwd / name
        path.write_text(content, "utf-8")
        return str(path)

    @asynccontextmanager
    async def playing(
        self, *script: Line, editor: FakeEditor | None = None, hooks: Any = (), **options: Any
    ) -> AsyncIterator[FakeEditor]:
        """A client of the whole agent, which plays a script."""
        agent = build(cwd=self.cwd, hooks=hooks, **options)
        if "model" not in options:
            agent.llm = self.model = ScriptedModel(*script, context_window=100_000)
        self.editor = editor or self.editor
        async with self.editor.connected(agent, initialize="hello" not in options):
            yield self.editor
        self.model.verify()

    async def open(self, method: str = "session/new", **params: Any) -> str:
        """Open a session, and wait for all that follows the answer; its id."""
        wire = self.editor.wire
        answered = await wire.request(method, {"cwd": str(self.cwd), "mcpServers": [], **params})
        self._opened += 1
        expected = self._opened
        kind = "available_commands_update"
        await wire.until(lambda: len(self.editor.updates(kind)) >= expected)
        return answered["result"].get("sessionId") or params["sessionId"]

    async def ask(self, method: str, **params: Any) -> Any:
        """Send a request and wait for its response."""
        return await self.editor.wire.request(method, params)

    async def prompt(self, session: str, *blocks: str | dict[str, Any]) -> Any:
        """Send a prompt and wait for its response."""
        said = [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]
        return await self.ask("session/prompt", sessionId=session, prompt=said)

    def begin(self, session: str, said: str) -> asyncio.Task[Any]:
        """Send a prompt."""
        return asyncio.create_task(self.prompt(session, said))

    def text(self, names: Mapping[str, str], elided: Collection[str]) -> str:
        """The conversation, without the values of these fields."""
        log = [
            (is_sent, without(message, elided))
            for is_sent, message in self.editor.wire.log
            if kind_of(message) not in elided
        ]
        return transcript(log, {**self._names, **names})


def kind_of(message: dict[str, Any]) -> str:
    """What an update is about; nothing for every other message."""
    is_update = message.get("method") == "session/update"
    return message["params"]["update"]["sessionUpdate"] if is_update else ""


def without(message: Any, elided: Collection[str]) -> Any:
    """A message with three dots in place of what is recorded elsewhere, or differs."""
    if isinstance(message, list):
        return [without(each, elided) for each in message]
    if not isinstance(message, dict):
        return message
    return {
        name: "..." if name in elided else without(each, elided) for name, each in message.items()
    }


Scenario: TypeAlias = Callable[[Stage], Awaitable[None]]


# the beginning


async def initialize(stage: Stage) -> None:
    """By clients of every kind; one asks for a version of the future, one is malformed."""
    async with stage.playing():
        for capabilities in (
            {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True},
            {"auth": {"terminal": True}},
        ):
            await stage.ask("initialize", protocolVersion=1, clientCapabilities=capabilities)
        await stage.ask("initialize", protocolVersion=65535)
        await stage.ask("initialize", protocolVersion=None)


async def new_session(stage: Stage) -> None:
    async with stage.playing():
        await stage.open(additionalDirectories=["/srv"])


async def text_and_thoughts(stage: Stage) -> None:
    usage: Usage = {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100, "cost": 0.25}
    said = text("Hello, Ada.", reasoning="They greet me.", usage=usage)
    async with stage.playing(said, "Bye."):
        session = await stage.open()
        await stage.prompt(session, "Hello!")
        await stage.prompt(session, "Bye!")


# tools


async def edit_with_a_diff(stage: Stage) -> None:
    path = stage.file("a.txt", "one\ntwo\n")
    edit = call("Edit", file_path=path, old_string="two", new_string="three")
    async with stage.playing(call("Read", file_path=path), edit, "Done."):
        await stage.prompt(await stage.open(), "Change it")


async def search(stage: Stage) -> None:
    stage.file("a.txt", "one\n")
    looks = [call("Glob", pattern="*.txt"), call("Grep", pattern="one", output_mode="content")]
    async with stage.playing(*looks, "Done."):
        await stage.prompt(await stage.open(), "Look")


async def a_tool_that_fails(stage: Stage) -> None:
    async with stage.playing(call("Read", file_path="gone.txt"), call("Nope"), "Well."):
        await stage.prompt(await stage.open(), "Read it")


COMMAND = "echo out; echo err >&2; exit 3"


async def command_in_the_clients_terminal(stage: Stage) -> None:
    async with stage.playing(
        call("Bash", command=COMMAND), "Done.", editor=FakeEditor(terminals=True), allow=["Bash"]
    ):
        await stage.prompt(await stage.open(), "Run it")


async def command_shown_as_a_terminal(stage: Stage) -> None:
    editor = FakeEditor(meta={"terminal_output": True})
    async with stage.playing(
        call("Bash", command=gated(stage)), "Done.", editor=editor, allow=["Bash"]
    ):
        turn = stage.begin(await stage.open(), "Run it")
        await editor.wire.until(lambda: "first" in json.dumps(editor.updates("tool_call_update")))
        stage.file("gate", "")
        await turn


async def command_in_fenced_text(stage: Stage) -> None:
    async with stage.playing(call("Bash", command=gated(stage)), "Done.", allow=["Bash"]) as editor:
        turn = stage.begin(await stage.open(), "Run it")
        await editor.wire.until(lambda: "first" in json.dumps(editor.updates("tool_call_update")))
        stage.file("gate", "")
        await turn


def gated(stage: Stage) -> str:
    """A command that prints a line and waits for a file."""
    return f"echo first; while [ ! -e {stage.cwd}/gate ]; do sleep 0.01; done"


async def files_of_the_client(stage: Stage) -> None:
    """An unsaved buffer is read and written through the client."""
    path = stage.file("a.txt", "saved\n")
    edit = call("Edit", file_path=path, old_string="unsaved", new_string="changed")
    editor = FakeEditor(files={path: "unsaved\n"})
    async with stage.playing(
        call("Read", file_path=path), edit, "Done.", editor=editor, allow=["Edit"]
    ):
        await stage.prompt(await stage.open(), "Change it")


async def picture_of_a_tool(stage: Stage) -> None:
    picture = stage.cwd / "a.png"
    picture.write_bytes(PNG)
    async with stage.playing(call("Read", file_path=str(picture)), "A dot."):
        await stage.prompt(await stage.open(), "What is on it?")


PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360f8cfc000000301010018dd8db00000000049454e44ae426082"
)


async def plan(stage: Stage) -> None:
    steps = [("Think", "completed"), ("Write", "in_progress"), ("Test", "pending")]
    todos = [{"content": content, "status": status} for content, status in steps]
    async with stage.playing(call("TodoWrite", todos=todos), "On it."):
        await stage.prompt(await stage.open(), "Plan it")


async def sub_agent(stage: Stage) -> None:
    stage.file("a.txt", "one\n")
    child = call("Agent", description="Count files", prompt="How many files are there?")
    async with stage.playing(child, call("Glob", pattern="*"), "One.", "There is one."):
        await stage.prompt(await stage.open(), "Count")


async def hook_on_a_card(stage: Stage) -> None:
    def before_tool(call: Any) -> Answer | None:
        return Answer("a.txt, b.txt") if call.name == "Glob" else None

    async with stage.playing(call("Glob", pattern="*"), "Two.", hooks=[before_tool]):
        await stage.prompt(await stage.open(), "Look")


# permission


def permitting(answer: str) -> Scenario:
    async def scenario(stage: Stage) -> None:
        writes = [call("Bash", command=f"touch {name}") for name in "ab"]
        script = writes[:1] if answer == "cancelled" else writes
        editor = FakeEditor(permissions=[answer])
        async with stage.playing(*script, "Done.", editor=editor):
            session = await stage.open()
            await stage.prompt(session, "Run it")
            if answer == "cancelled":
                await stage.prompt(session, "Well?")

    return scenario


async def permission_of_a_client_that_cannot_ask(stage: Stage) -> None:
    unknown = RequestError.method_not_found("session/request_permission")
    writes = [call("Bash", command=f"touch {name}") for name in "ab"]
    async with stage.playing(*writes, "Well.", editor=FakeEditor(permissions=[unknown])):
        await stage.prompt(await stage.open(), "Run it")


# cancelling


async def cancel_in_a_text(stage: Stage) -> None:
    async with stage.playing(["half a ", delay(FOREVER), "sentence"], "Yes?") as editor:
        session = await stage.open()
        turn = stage.begin(session, "Go")
        await editor.saw("agent_message_chunk")
        await editor.wire.send(notification("session/cancel", sessionId=session))
        await turn
        await stage.prompt(session, "Still there?")


async def cancel_in_a_tool(stage: Stage) -> None:
    async with stage.playing(call("Bash", command="sleep 600"), allow=["Bash"]) as editor:
        session = await stage.open()
        turn = stage.begin(session, "Go")
        await editor.saw("tool_call_update", status="in_progress")
        await editor.wire.send(notification("session/cancel", sessionId=session))
        await turn


async def cancel_in_a_question(stage: Stage) -> None:
    asked = asyncio.Event()

    async def wait(request: Any) -> str:
        asked.set()
        await asyncio.Event().wait()
        return ""

    editor = FakeEditor(permissions=[wait], silent=["$/cancel_request"])
    async with stage.playing(call("Bash", command="touch a"), editor=editor):
        session = await stage.open()
        turn = stage.begin(session, "Go")
        await asked.wait()
        await editor.wire.send(notification("session/cancel", sessionId=session))
        await turn


def notification(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


# sessions


async def load(stage: Stage) -> None:
    """Everything again, by another process."""
    path = stage.file("a.txt", "one\n")
    edit = call("Edit", file_path=path, old_string="one", new_string="two")
    todos = [{"content": "Write", "status": "completed"}]
    usage: Usage = {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100}
    ended = text("Done.", reasoning="All good.", usage=usage)
    script = call("TodoWrite", todos=todos), ended
    async with stage.playing(call("Read", file_path=path), edit, *script):
        session = await stage.open()
        await stage.prompt(session, "Change it", PICTURE)
    stage = later(stage)
    async with stage.playing():
        await stage.open("session/load", sessionId=session)


async def resume_and_go_on(stage: Stage) -> None:
    async with stage.playing("Noted."):
        session = await stage.open()
        await stage.prompt(session, "Remember 7")
    stage = later(stage)
    async with stage.playing("7."):
        await stage.open("session/resume", sessionId=session)
        await stage.prompt(session, "What was it?")


def later(stage: Stage) -> Stage:
    """The same folder, another client and another agent; this is what is recorded."""
    stage.editor = FakeEditor()
    stage._opened = 0
    return stage


async def list_by_page_and_directory(stage: Stage) -> None:
    async with stage.playing("Hello."):
        session = await stage.open()
        await stage.prompt(session, "Hi")
        await stage.ask("session/list", cwd=str(stage.cwd))
        await stage.ask("session/list", cwd="/nowhere")
        await stage.ask("session/list", cursor="no such page")


async def close_and_delete(stage: Stage) -> None:
    async with stage.playing():
        session = await stage.open()
        await stage.ask("session/close", sessionId=session)
        await stage.prompt(session, "Hello?")
        for _ in range(2):
            await stage.ask("session/delete", sessionId=session)
        await stage.ask("session/load", sessionId=session, cwd=str(stage.cwd), mcpServers=[])


async def fork(stage: Stage) -> None:
    async with stage.playing("Noted.", "8."):
        session = await stage.open()
        await stage.prompt(session, "Remember 7")
        forked = await stage.open("session/fork", sessionId=session)
        await stage.prompt(forked, "Make it 8")


async def title(stage: Stage) -> None:
    async with stage.playing():
        session = await stage.open()
        await stage.ask("session/set_title", sessionId=session, title="  The  parser ")
        await stage.ask("session/set_title", sessionId=session, title=" ")


# choices


async def modes_and_options(stage: Stage) -> None:
    async with stage.playing():
        session = await stage.open()
        await stage.ask("session/set_mode", sessionId=session, modeId="plan")
        for name, value in (("mode", "acceptEdits"), ("mode", "nap"), ("colour", "red")):
            await stage.ask(
                "session/set_config_option", sessionId=session, configId=name, value=value
            )


async def slash_command(stage: Stage) -> None:
    async with stage.playing():
        session = await stage.open()
        await stage.prompt(session, "/mode plan")
        await stage.prompt(session, "/context")


# the rest of the world


async def mcp_server_that_does_not_start(stage: Stage) -> None:
    server = {"name": "docs", "command": "/no/such/program", "args": [], "env": []}
    editor = FakeEditor(notices=True)
    async with stage.playing("Hello.", editor=editor):
        session = await stage.open(mcpServers=[server])
        await editor.saw("notice")
        await stage.prompt(session, "Hi")


async def mcp_server(stage: Stage) -> None:
    stage.file("server.py", SERVER)
    server = {"name": "sums", "command": sys.executable, "args": ["server.py"], "env": []}
    async with stage.playing(call("mcp__sums__add", a=1, b=2), "3.", allow=["mcp__sums"]) as editor:
        session = await stage.open(mcpServers=[server])
        await editor.wire.until(lambda: len(editor.updates("available_commands_update")) == 2)
        await stage.prompt(session, "1 + 2?")


SERVER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("sums")

@server.tool()
def add(a: int, b: int) -> str:
    "Add two numbers."
    return str(a + b)

@server.prompt()
def explain(number: str) -> str:
    "Say what a number is good for."
    return f"What is {number} good for?"

server.run()
"""


async def question_with_a_form(stage: Stage) -> None:
    async with stage.playing(
        call("Glob", pattern="*"), "Done.", editor=FakeEditor(answers=["b"]), hooks=[asking]
    ):
        await stage.prompt(await stage.open(), "Look")


async def question_without_forms(stage: Stage) -> None:
    async with stage.playing(
        call("Glob", pattern="*"), "Done.", editor=FakeEditor(permissions=["choice-1"]), hooks=[asking]
    ):  # fmt: skip
        await stage.prompt(await stage.open(), "Look")


async def asking(ctx: Any) -> None:
    await ctx.ui.select("Which one?", choices=["a", "b"])


asking.__name__ = "before_tool"


async def no_key(stage: Stage) -> None:
    async with stage.playing(model="mistral/large"):
        session = await stage.open()
        await stage.prompt(session, "Hi")
        for method in ("environment", "login", "magic"):
            await stage.ask("authenticate", methodId=method)


async def provider_that_fails(stage: Stage) -> None:
    error = ModelError("the quota is used up", kind="rate_limit", retry_after=1.5)
    async with stage.playing(error, error, "Better.", hooks=[retrying]):
        session = await stage.open()
        for said in ("Hi", "And now?", "Now?"):
            await stage.prompt(session, said)


async def provider_that_fails_with_notices(stage: Stage) -> None:
    error = ModelError("the quota is used up", kind="rate_limit", retry_after=1.5)
    async with stage.playing(error, hooks=[retrying], editor=FakeEditor(notices=True)):
        await stage.prompt(await stage.open(), "Hi")


async def retrying(ctx: Any) -> None:
    await ctx.emit(Retrying(1, 3.0, "rate limited"))


retrying.__name__ = "before_llm_request"


async def compaction(stage: Stage) -> None:
    async def after_turn(ctx: Any) -> None:
        await ctx.emit(Compacted("We spoke.", "auto"))

    async with stage.playing("Hello.", hooks=[after_turn], editor=FakeEditor(notices=True)):
        await stage.prompt(await stage.open(), "Hi")


async def broken_prefix(stage: Stage) -> None:
    """A hook changes the system message at each request: the user is told once, the usage always."""

    def before_llm_request(messages: list[Any]) -> list[Any]:
        head = {**messages[0], "content": f"Request {len(messages)}"}
        return [head, *messages[1:]]

    usages: list[Usage] = [{"input_tokens": n, "total_tokens": n} for n in (900, 1000, 1100)]
    script = [text(f"{n}.", usage=usage) for n, usage in enumerate(usages)]
    editor = FakeEditor(notices=True)
    async with stage.playing(*script, hooks=[before_llm_request], editor=editor):
        session = await stage.open()
        for prompt in ("One", "Two", "Three"):
            await stage.prompt(session, prompt)


# more than one at a time


async def prompts_that_wait(stage: Stage) -> None:
    held = Held()
    async with stage.playing(call("wait"), "One.", "Two.", hooks=[held], allow=["wait"]):
        session = await stage.open()
        turns = [stage.begin(session, "1")]
        await stage.editor.saw("tool_call_update", status="in_progress")
        turns.append(stage.begin(session, "2"))
        await asyncio.sleep(0)
        await stage.ask("session/list", cwd="/nowhere")
        held.gate.set()
        await asyncio.gather(*turns)


async def steering(stage: Stage) -> None:
    held = Held()
    async with stage.playing(call("wait"), "Left it is.", hooks=[held], allow=["wait"]):
        session = await stage.open()
        params: dict[str, Any] = {
            "sessionId": session,
            "prompt": [{"type": "text", "text": "left!"}],
        }
        params["_meta"] = {"steering": {"idleBehavior": "promptRequired"}}
        await stage.ask("_session/steering", **params)
        turn = stage.begin(session, "Go")
        await stage.editor.saw("tool_call_update", status="in_progress")
        await stage.ask("_session/steering", **params)
        held.gate.set()
        await turn


class Held:
    """Adds a tool that waits for the test."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()

    def init_agent(self, agent: Agent) -> None:
        @tool
        async def wait(ctx: ToolEnvironment) -> str:
            """Wait."""
            await self.gate.wait()
            return "waited"

        agent.add_tool(wait)


async def everything_in_a_prompt(stage: Stage) -> None:
    path = stage.file("a b.txt", "one\n")
    async with stage.playing("Fine."):
        await stage.prompt(
            await stage.open(),
            "Look at the two files and at the picture, and then tell me what you see: ",
            {"type": "resource_link", "uri": Path(path).as_uri(), "name": "a b.txt"},
            {"type": "resource", "resource": {"uri": "file:///n.txt", "text": "note"}},
            {"type": "audio", "mimeType": "audio/wav", "data": "aGk="},
            PICTURE,
        )


async def requests_that_make_no_sense(stage: Stage) -> None:
    async with stage.playing():
        await stage.ask("no/such/method")
        await stage.ask("_vendor/thing")
        await stage.ask("session/new", cwd="relative")
        await stage.ask("session/prompt", sessionId="nobody", prompt=[])
        await stage.ask("session/prompt", sessionId="nobody", prompt="Hi")


SCENARIOS: dict[str, Scenario] = {
    scenario.__name__: scenario
    for scenario in (
        *(initialize, new_session, text_and_thoughts, edit_with_a_diff, search, a_tool_that_fails),
        *(command_in_the_clients_terminal, command_shown_as_a_terminal, command_in_fenced_text),
        *(files_of_the_client, picture_of_a_tool, plan, sub_agent, hook_on_a_card),
        *(permission_of_a_client_that_cannot_ask, cancel_in_a_text, cancel_in_a_tool),
        *(cancel_in_a_question, load, resume_and_go_on, list_by_page_and_directory),
        *(close_and_delete, fork, title, modes_and_options, slash_command, mcp_server),
        *(mcp_server_that_does_not_start, question_with_a_form, question_without_forms, no_key),
        *(provider_that_fails, provider_that_fails_with_notices, compaction, prompts_that_wait),
        *(broken_prefix, steering, everything_in_a_prompt, requests_that_make_no_sense),
    )
} | {
    f"permission_{answer}": permitting(answer)
    for answer in ("allow_once", "allow_always", "reject_once", "reject_always", "cancelled")
}


COMPLETE = {"initialize", "new_session", "modes_and_options"}
SLOW = {"mcp_server", "mcp_server_that_does_not_start"}
UNSTEADY = {"totalDurationMs", "durationMs"}
UNORDERED = {"mcp_server_that_does_not_start": {"available_commands_update"}}
RECORDED_ELSEWHERE = {
    *("agentCapabilities", "authMethods", "clientCapabilities"),
    *("modes", "configOptions", "availableCommands"),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in SCENARIOS],
)
async def test_the_conversation_is_the_recorded_one(name: str, tmp_path: Path, home: Path) -> None:
    stage = Stage(tmp_path, home)
    await SCENARIOS[name](stage)
    names = {sys.executable: "<python>", str(Path(sys.executable).parent): "<bin>"}
    elided = UNSTEADY if name in COMPLETE else UNSTEADY | RECORDED_ELSEWHERE
    elided |= UNORDERED.get(name, set())
    assert stage.text(names, elided) == external_file(f"{HERE}/{name}.txt")


def test_every_recorded_conversation_is_held() -> None:
    assert {file.stem for file in FOLDER.glob("*.txt")} == set(SCENARIOS)
