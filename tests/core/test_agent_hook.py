"""`AgentHook`, the table of events as a class: what editors and type checkers make of it."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crow import Agent, AgentHook, Allow, Ask, tool
from crow.core.hooks.agent_hook import HookPoints
from crow.core.hooks.points import POINTS, Point
from crow.core.hooks.registry import KINDS
from crow.testing import ScriptedModel, call

PYRIGHT = Path(sys.executable).parent / "pyright"
ROWS = {point.name: point for point in POINTS}


def parameters(point: Point) -> dict[str, str]:
    """What an editor shows of an event: its parameters with their types."""
    signature = inspect.signature(getattr(AgentHook, point.name))
    return {p.name: p.annotation for p in signature.parameters.values() if p.name != "self"}


def test_the_typed_attributes_of_hooks_are_the_rows():
    typed = {name: kind for name, kind in HookPoints.__annotations__.items() if name in ROWS}
    assert list(typed) == list(ROWS) == [name for name in vars(AgentHook) if name[0] != "_"]
    for name, point in ROWS.items():
        kind, _, given = typed[name].rstrip("]").partition("[")
        assert kind == KINDS.get(name, KINDS[point.kind]).__name__
        assert given.split(",")[0] in ("", point.context.__name__)


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name)
def test_a_hook_can_name_every_parameter_that_an_editor_completes(point: Point):
    names = parameters(point)
    assert ("call_next" in names) == (point.kind == "wrap")
    assert [name for name in names if name not in ("call_next", "session")] == [*point.fields]
    space: dict[str, Any] = {}
    exec(f"def hook({', '.join(names)}): ...", space)
    agent = Agent(ScriptedModel())
    agent.hooks.register(point.name, space["hook"])
    assert [hook.event for hook in agent.hooks] == [point.name]


async def test_what_is_not_overridden_does_nothing_or_goes_on():
    async def call_next() -> str:
        return "went on"

    for point in POINTS:
        method = getattr(AgentHook(), point.name)
        if point.kind == "wrap":
            arguments = dict.fromkeys(parameters(point)) | {"call_next": call_next}
            expected = None if point.name == "around_run" else "went on"
            assert await method(**arguments) == await method("whatever", call_next) == expected
            with pytest.raises(TypeError, match="hand call_next on"):
                await method("whatever")
        else:
            assert method() == method("whatever", it="is called with") == {}
            assert await method() is None


class Calls(AgentHook):
    def __init__(self) -> None:
        self.heard: list[str] = []

    async def before_run(self, session: Any, user_input: Any) -> None:
        self.heard.append("before_run")
        await super().before_run(session, user_input)

    async def before_llm_request(self, session: Any, messages: Any) -> Any:
        messages = await super().before_llm_request(session, messages)
        messages.insert(0, {"role": "system", "content": "You are Crow."})
        return messages

    async def after_llm_response(self, ctx: Any) -> Any:
        reply = await super().after_llm_response(ctx)
        return replace(reply, text=reply.text.upper())

    async def before_tool(self, call: Any) -> Any:
        self.heard.append(call.name)
        return super().before_tool(call)

    def on_permission(self, ctx: Any) -> Any:
        self.heard.append("on_permission")
        return super().on_permission(ctx)

    async def around_tool(self, call: Any, call_next: Any) -> Any:
        return await super().around_tool(call, call_next=call_next)

    def after_tool(self, result: Any, ctx: Any) -> Any:
        return super().after_tool(result)

    async def after_turn(self, session: Any, usage: Any) -> Any:
        return await super().after_turn(session, usage)

    def on_stop(self, ctx: Any) -> Any:
        return super().on_stop(ctx)


async def test_super_is_called_as_in_the_essay_and_hands_on_what_it_was_given():
    @tool
    def look() -> str:
        """Look around."""
        return "nothing special"

    model = ScriptedModel(call("look"), "done.")
    agent = Agent(model, hooks=[calls := Calls()], tools=[look])
    agent.hooks.register("before_tool", lambda: Ask(default=True), judge=True)
    agent.hooks.register("on_permission", lambda: Allow())
    reply = await agent.run("Hi")
    assert [record.error for record in reply.session.trace if record.error] == []
    assert calls.heard == ["before_run", "look", "on_permission"]
    assert model.asked[0]["messages"][0] == {"role": "system", "content": "You are Crow."}
    assert reply.text == "DONE."
    assert reply.session.messages[2]["content"] == "nothing special"


def checked(folder: Path, code: str) -> list[str]:
    """What pyright says of a program."""
    path = folder / "program.py"
    path.write_text(f"# pyright: standard\n{code}", "utf-8")
    ran = subprocess.run(
        [PYRIGHT, "--outputjson", "--pythonpath", sys.executable, path],
        capture_output=True,
        text=True,
        cwd=folder,
    )
    return [each["message"] for each in json.loads(ran.stdout)["generalDiagnostics"]]


NAMED = """
from collections.abc import Sequence
from typing import Any
from crow import *  # pyright: ignore[reportWildcardImportFromLibrary]
from crow.core.events import Event, StopReason
from crow.core.messages import Content, Message, ToolSpec, Usage
from crow.core.ports.llm import Completion
from crow.core.ports.client import Option
from crow.core.ports.client import Option
from crow.core.ports.llm import Completion
from crow.core.ports.tool import Tool
from crow.core.hooks.run_context import Reply
from crow.core.session import Session
from crow.core.tools import Call, Outcome, ToolResult
"""
OVERRIDDEN = """
class Named(AgentHook):
    async def after_turn(self, session: Session, usage: Usage | None) -> None: ...
    def before_tool(self, call: Call) -> Deny | None: ...
    async def before_run(self, user_input: str) -> str:
        return user_input.upper()

class Whole(AgentHook):
    async def before_tool(self, ctx: ToolContext) -> Deny | None: ...
    def before_run(self, ctx: RunContext) -> None: ...
    def on_message(self) -> None: ...
"""


@pytest.mark.slow
def test_types_are_those_of_the_fields_and_whatever_a_hook_names_is_legal(tmp_path: Path):
    """Of the whole program one line is wrong, so that it is seen to be looked at."""
    code = NAMED + OVERRIDDEN
    for point in POINTS:
        code += f"def {point.name}(ctx: {point.context.__name__}) -> None:\n"
        for name, shown in parameters(point).items():
            if name != "call_next":
                code += f"    {name}: {shown} | None = ctx.{name}\n    print({name})\n"
    wrong = "def wrong(ctx: ToolContext) -> None:\n    print(ctx.duration.upper())\n"
    (error,) = checked(tmp_path, code + wrong)
    assert "upper" in error


class Editor:
    """An editor, as the language server of pyright sees one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server = subprocess.Popen(
            [PYRIGHT.with_name("pyright-langserver"), "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def send(self, **message: Any) -> None:
        assert self.server.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.server.stdin.flush()

    def ask(self, method: str, **params: Any) -> Any:
        self.send(id=method, method=method, params=params)
        while True:
            message = self.heard()
            if message.get("id") == method:
                return message["result"]
            if "id" in message:
                settings = [
                    {"pythonPath": sys.executable} for _ in message["params"].get("items", ())
                ]
                self.send(id=message["id"], result=settings or None)

    def heard(self) -> Any:
        assert self.server.stdout is not None
        length = 0
        while line := self.server.stdout.readline().strip().lower():
            if line.startswith(b"content-length"):
                length = int(line.split(b":")[1])
        return json.loads(self.server.stdout.read(length))

    def start(self) -> None:
        root = {"uri": self.folder.as_uri(), "name": "it"}
        able = {"workspace": {"configuration": True}}
        self.ask("initialize", processId=None, capabilities=able, workspaceFolders=[root])
        self.send(method="initialized", params={})

    def completes(self, begun: str) -> dict[str, str]:
        """What is offered by name in a hook's class, where somebody has begun to write a method."""
        uri = (self.folder / f"{begun}.py").as_uri()
        text = f"from crow import AgentHook\n\nclass Mine(AgentHook):\n    def {begun}"
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.send(method="textDocument/didOpen", params={"textDocument": document})
        place = {"line": 3, "character": len(f"    def {begun}")}
        found = self.ask("textDocument/completion", textDocument={"uri": uri}, position=place)
        edits = (each for each in found["items"] if "textEdit" in each)
        return {each["label"]: each["textEdit"]["newText"] for each in edits}

    def close(self) -> None:
        self.server.kill()
        self.server.communicate()


@pytest.mark.slow
def test_an_editor_completes_the_arguments_of_each_event(tmp_path: Path):
    editor = Editor(tmp_path)
    offered: dict[str, str] = {}
    try:
        editor.start()
        for begun in ("on_", "before_", "around_", "after_"):
            offered |= editor.completes(begun)
    finally:
        editor.close()
    for point in POINTS:
        shown = ", ".join(f"{name}: {kind}" for name, kind in parameters(point).items())
        assert offered[point.name].startswith(f"{point.name}(self, {shown}) -> ")


async def test_a_stream_of_the_class_above_goes_through_like_call_next():
    class Upper(AgentHook):
        async def around_llm_request(self, ctx: Any, call_next: Any) -> Any:
            async for piece in super().around_llm_request(ctx, call_next):
                yield replace(piece, text=piece.text.upper())

    reply = await Agent(ScriptedModel("quiet"), hooks=[Upper()], tools=[]).run("Go")
    assert reply.text == "QUIET"
