"""The same test through another face: an editor's over ACP, or the command in a pipe."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crow.core.events import Event, Notice, TextDelta, ToolEnded, ToolStarted
from crow.core.hooks.run_context import Reply
from crow.core.ports.client import Option, PermissionRequest, Question
from crow.core.session import Session
from crow.core.tools import Call
from crow.core.trace import Record
from crow.testing.editor import FakeEditor
from crow.testing.endpoint import USAGE, Endpoint, Response, delta, stream
from crow.testing.model import Asked, Delay, ScriptedCall, ScriptedModel, ScriptedText
from crow.testing.pilot import Pilot
from crow.testing.reporter import SPEC, read_report, variable

if TYPE_CHECKING:
    from crow.core.agent import Agent
    from crow.testing.model import Line

Message = dict[str, Any]
NUMBERS: dict[str, Any] = {"integer": int, "number": float}
"""What makes what is typed a number, by the type of a field."""
OPTIONS = ("allow", "deny", "extensions")
"""What `configure` can say of a command, beside its settings."""


class ScriptedEndpoint(Endpoint):
    """An endpoint that plays the lines of a `ScriptedModel`."""

    def __init__(self) -> None:
        super().__init__()
        self._ids = count(1)

    @property
    def left(self) -> int:
        """How many responses were not played yet."""
        return len(self._script)

    def say(self, line: Line) -> None:
        """Add a line. Raises ``TypeError`` for one that no endpoint can say."""
        self.play(self._response(line))

    def _response(self, line: Line) -> Response:
        events: list[Any] = []
        calls, finish = 0, "stop"
        for piece in line if isinstance(line, list | tuple) else [line]:
            match piece:
                case str(text) | ScriptedText(text, reasoning=""):
                    events.append(text)
                case ScriptedText(text, _, reasoning):
                    events += [delta(reasoning_content=reasoning), text]
                case Delay(seconds):
                    events.append(float(seconds))
                case ScriptedCall(name, args):
                    function = {"name": name, "arguments": json.dumps(args)}
                    call = {"index": calls, "id": f"call_{next(self._ids)}", "function": function}
                    events.append(delta(tool_calls=[call]))
                    calls, finish = calls + 1, "tool_calls"
                case _:
                    raise TypeError(f"a model behind an endpoint cannot say {piece!r}")
        return stream(*events, delta(finish), USAGE)

    @property
    def was_asked(self) -> list[Asked]:
        """The requests as a `ScriptedModel` keeps them."""
        bodies = [received.body for received in self.requests]
        return [
            {
                "messages": body["messages"],
                "tools": body.get("tools", []),
                "model": body["model"],
                "params": {},
                "session_id": "1",
            }
            for body in bodies
        ]


class Face(Pilot):
    """Crow in a process of its own, which asks an endpoint and reports what happens.

    Its ``agent`` is a twin that says which names there are, and runs nothing.
    """

    def __init__(self, build: Callable[..., Agent], cwd: Path, folder: Path) -> None:
        super().__init__(build, cwd)
        self._report = folder / "report"
        self._endpoint = ScriptedEndpoint()
        self._model = ScriptedModel()
        self._stack = AsyncExitStack()

    def configure(self, *, settings: Mapping[str, Any] | None = None, **options: Any) -> None:
        """Say what the command is started with: ``settings``, ``allow``, ``deny`` and so on."""
        if others := options.keys() - set(OPTIONS):
            known = ", ".join((*OPTIONS, "settings"))
            raise TypeError(f"another process takes {known}, not {', '.join(others)}")
        super().configure(settings=settings, **options)

    def use(self, *things: Any, **options: Any) -> None:
        """Hang classes, functions and modules that the other process can import, and files."""
        if self._started:
            raise RuntimeError("the process runs: use(...) comes before run(...)")
        if options:
            raise TypeError("another process takes no options here: configure(settings=...)")
        variable([each for each in things if not isinstance(each, str | Path)], self._report)
        super().use(*things)

    @property
    def model(self) -> ScriptedModel:
        """What the endpoint was asked, as a model keeps it."""
        self._model.asked = self._endpoint.was_asked
        return self._model

    def verify(self) -> None:
        """Raise AssertionError for lines and answers that were not used up."""
        __tracebackhide__ = True
        super().verify()
        if self._endpoint.left:
            raise AssertionError(f"{self._endpoint.left} of the model's lines were left over")

    def _learn(self, *script: Line) -> None:
        for line in script:
            self._endpoint.say(line)

    async def _answer(self, prompt: str) -> Reply:
        __tracebackhide__ = True
        if not self._started:
            self._started = True
            self._report.touch()
            await self._stack.enter_async_context(self._endpoint)
            await self._start()
        reply = await self._prompt(prompt)
        self._look()
        self.user.check()
        if reply.stop_reason == "error":
            raise AssertionError(f"the run failed: {reply.detail}")
        return reply

    async def _start(self) -> None:
        """Be ready for a prompt."""

    async def _prompt(self, prompt: str) -> Reply:
        raise NotImplementedError

    def _told(self) -> Iterator[Event]:
        """What the face has shown."""
        raise NotImplementedError

    def _reply(self, text: str, stop_reason: Any, detail: str = "") -> Reply:
        return Reply(text, stop_reason, {}, Session(cwd=str(self.cwd)), detail)

    def _look(self) -> None:
        """Read what has happened."""
        happened = list(read_report(self._report))
        self.records[:] = [each for each in happened if isinstance(each, Record)]
        calls = [each for each in happened if isinstance(each, ToolStarted | ToolEnded)]
        self.user.told[:] = [*self._told(), *calls]

    async def _close(self) -> None:
        if self._started:
            self._started = False
            await self._stack.aclose()
            self._look()

    def _command(self, *words: str) -> list[str]:
        """A command line of Crow's, with the extensions under test."""
        options = [f"--{name}={rule}" for name in OPTIONS[:2] for rule in self._listed(name)]
        named = [f"--extension={each}" for each in (*self._listed("extensions"), SPEC)]
        return [sys.executable, "-m", "crow", *words, *options, *named]

    def _listed(self, name: str) -> list[str]:
        return list(self._options.get(name, ()))

    @property
    def _env(self) -> Mapping[str, str]:
        endpoint = {"CROW_BASE_URL": self._endpoint.url, "CROW_MODEL": "scripted"}
        return {**endpoint, "CROW_API_KEY": "none", **variable(self._hooks, self._report)}


class EditorFace(Face):
    """``crow acp``, with a fake editor for its user; needs ``crow-acp[testing]``."""

    async def _start(self) -> None:
        self.editor = FakeEditor(permissions=[self._permission], answers=[self._form], notices=True)
        command = self._command("acp")
        spawned = self.editor.spawned(*command, env=self._env, cwd=self.cwd)
        await self._stack.enter_async_context(spawned)
        self._session_id = await self.editor.new_session(self.cwd)

    async def _prompt(self, prompt: str) -> Reply:
        answer = await self.editor.prompt(self._session_id, prompt)
        texts: dict[str, str] = {}
        for event in self._told():
            if isinstance(event, TextDelta):
                texts[event.message_id] = texts.get(event.message_id, "") + event.text
        said: Message = (answer.field_meta or {}).get("crow", {})  # more than the protocol knows
        why = said.get("stopReason", answer.stop_reason)
        return self._reply([*texts.values(), ""][-2 if texts else 0], why, said.get("detail", ""))

    def _told(self) -> Iterator[Event]:
        for update in self.editor.updates():
            match update:
                case {"sessionUpdate": "agent_message_chunk", "content": {"text": text}, **rest}:
                    yield TextDelta(text, rest.get("messageId", ""))
                case {"sessionUpdate": "notice", "title": title}:
                    yield Notice(title)
                case _:
                    pass

    async def _permission(self, asked: Message) -> str:
        """What the user answers to a request for permission."""
        card = asked["toolCall"]
        texts = [part["content"]["text"] for part in card.get("content", ()) if "content" in part]
        args = card.get("rawInput", {})
        request = PermissionRequest(
            Call(card["toolCallId"], card.get("name", ""), args),
            args,
            card["title"],
            card.get("kind", "other"),
            texts[0].partition("\n")[0] if texts else "",
            [Option(each["optionId"], each["name"], each["kind"]) for each in asked["options"]],
        )
        return await self.user.permission(self._session_id, request) or "cancelled"

    async def _form(self, schema: Message) -> Any:
        """What the user fills into a form, field by field."""
        said: Message = {}
        fields: Message = schema["properties"]
        for name, field in fields.items():
            about = field.get("description") or field.get("title")
            text = self.editor.asked[-1]["message"] if len(fields) == 1 else about or name
            said[name] = await self._filled(text, field)
        return {name: value for name, value in said.items() if value is not None} or None

    async def _filled(self, text: str, field: Message) -> Any:
        """A field's value; one that can have several has the one that the user chooses."""
        choices, kind = labels_of(field), field["type"]
        if kind == "boolean":
            question = Question(text, "confirm", default=field.get("default"))
        elif choices:
            question = Question(text, "select", tuple(choices), field.get("default"))
        else:
            question = Question(text, "text", default=field.get("default"))
        answer = await self.user.ask(self._session_id, question)
        if answer is None or answer is question.default:
            return answer
        value = choices.get(answer, answer) if choices else NUMBERS.get(kind, type(answer))(answer)
        return [value] if kind == "array" else value


def labels_of(field: Message) -> Message:
    """What can be chosen for a form's field, by what is shown of it."""
    holder = field.get("items", field)
    titled = [*holder.get("oneOf", ()), *holder.get("anyOf", ())]
    labels = {each["title"]: each["const"] for each in titled}
    return labels or {value: value for value in holder.get("enum", ())}


class PipeFace(Face):
    """``crow run`` in a pipe, a process a prompt: nobody can be asked there."""

    def __init__(self, build: Callable[..., Agent], cwd: Path, folder: Path) -> None:
        super().__init__(build, cwd, folder)
        self._session_id = ""
        self._events: list[Event] = []

    async def _prompt(self, prompt: str) -> Reply:
        words = self._command("run", "--json")
        words += [f"--resume={self._session_id}"] if self._session_id else []
        process = await asyncio.create_subprocess_exec(
            *words, "--", prompt,
            cwd=self.cwd,
            env={**os.environ, **self._env},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await process.communicate()
        lines = [json.loads(line) for line in out.splitlines()]
        reply = self._reply("", "error", err.decode())
        for line in lines:
            match line:
                case {"type": "session", "session_id": session_id}:
                    self._session_id = session_id
                case {"type": "text", "text": text, "message_id": message_id}:
                    self._events.append(TextDelta(text, message_id))
                case {"type": "notice", "text": text}:
                    self._events.append(Notice(text))
                case {"type": "permission_wanted"}:
                    await self._denied(line, lines)
                case {"type": "result", "text": text, "stop_reason": why, "detail": detail}:
                    reply = self._reply(text, why, detail)
                case _:
                    pass
        return reply

    def _told(self) -> Iterator[Event]:
        yield from self._events

    async def _denied(self, wanted: Message, lines: list[Message]) -> None:
        """Hold an answer of the user's against what came of a question that nobody was asked."""
        call_id = wanted["call_id"]
        started: Message = next(
            each for each in lines if each["type"] == "tool_pending" and each["call_id"] == call_id
        )
        request = PermissionRequest(
            Call(call_id, started["name"], started["args"]),
            started["args"],
            wanted["title"],
            started["kind"],
            wanted["reason"],
            [Option(each, each, each) for each in wanted["options"]],
        )
        chosen = await self.user.permission(self._session_id, request)
        if chosen is not None and not chosen.startswith("reject"):
            raise AssertionError(f"in a pipe nobody can answer {chosen!r} to {wanted['title']!r}")


FACES: Mapping[str, type[Face]] = {"acp": EditorFace, "pipe": PipeFace}
