"""Every way into Crow, each driven through the same conversation while a recorder listens."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from acp.exceptions import RequestError
from tests.acp.v2.conftest import Draft
from tests.cli.conftest import calls
from tests.extensions.shell_hooks.conftest import Person
from tests.firings.recorder import LOG

from crow import Agent, Session, build
from crow.core.ports.client import Question
from crow.extensions.shell_hooks.event import EVENTS
from crow.extensions.subagents import INHERITED
from crow.settings import load
from crow.testing import Endpoint, FakeEditor
from crow.testing.endpoint import USAGE, Response, answer, event, piece, respond

Firings = frozenset[tuple[str, str]]
"""Events, and who heard them: ``recorder``, ``inherited`` (by sub-agents) or ``settings``."""
Fired = dict[str, Firings]
Say = Callable[[str], Awaitable[Any]]
PATIENCE = 50.0
CROW = str(Path(sys.executable).with_name("crow"))
HERE = Path(__file__).parent
SERVER = HERE.parent / "extensions/mcp/servers/raw.py"
YES = {"type": "object", "properties": {"yes": {"type": "boolean"}}}
QUESTION = {"mode": "form", "message": "Sure?", "requestedSchema": YES}
MARKDOWN = "---\nname: {0}\ndescription: For the table\n---\nBe brief.\n"
FILES = ("skills/greet/SKILL.md", "agents/helper.md", "commands/begin.md", "CLAUDE.md")
FULL = {"prompt_tokens": 45_000, "completion_tokens": 1, "total_tokens": 45_001}
WORK = f"""\
count() {{ grep -c '"on_file_changed"' "${LOG}"; }}
case "$1" in
edit)  # a watched file, and the settings
    count > seen
    echo >> watched.txt
    cp flags.json old.json && mv edited.json flags.json && mv old.json edited.json
    exit 3 ;;
wait)  # until that was noticed
    until [ "$(count)" -gt "$(cat seen)" ]; do sleep 0.02; done ;;
hang)
    touch hangs
    sleep 60 ;;
esac
"""


def bash(task: str) -> tuple[str, dict[str, Any]]:
    """A call that runs a part of the script."""
    return "Bash", {"command": f"sh work.sh {task}"}


def step(title: str, status: str) -> tuple[str, dict[str, Any]]:
    """A call that puts a step on the plan."""
    return "TodoWrite", {"todos": [{"content": title, "status": status}]}


def everything(title: str, *more: tuple[str, dict[str, Any]]) -> Response:
    """A reply that calls for whatever has an event of its own."""
    return calls(
        step(title, "pending"),
        bash("edit"),
        ("Write", {"file_path": "denied.txt", "content": ""}),
        ("Write", {"file_path": "asked.txt", "content": ""}),
        ("Skill", {"skill": "greet"}),
        ("mcp__asker__echo", {}),
        ("Break", {}),
        *more,
        text="Well.",
    )


def filling(response: Response) -> Response:
    """The same reply, after which the model's window is almost full."""
    told, full = piece(event(USAGE)), piece(event({"choices": [], "usage": FULL}))
    return [full if part == told else part for part in response]


async def agree(form: dict[str, Any]) -> Any:
    """The answer to a form: the first of several choices, or yes."""
    [asked] = form["properties"].values()
    return asked.get("enum", [True])[0]


class Agreeing(Person):
    """A person who allows each call once, and agrees to whatever else is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = "allow_once"

    async def ask(self, session_id: str, question: Question) -> Any:
        return question.choices[0] if question.choices else self.agrees


OVER = json.dumps({"event": "after_run", "by": "recorder", "sub": False})
NUMBER = count()
FAULT = respond(400, {"error": "no"})
SUMMARY = answer("A summary.")
HELP = ("Agent", {"description": "Help", "prompt": "Help", "subagent_type": "helper"})


def conversation(*end: Response) -> list[Response]:
    """What the model says to one prompt, and what its sub-agent's says; it ends so."""
    title = f"Step {next(NUMBER)}"
    helper = [everything(title), filling(calls(step(title, "completed"))), SUMMARY, answer("Yes.")]
    last = filling(calls(step(title, "completed"), bash("wait")))
    return [everything(title, HELP), *helper, last, SUMMARY, *(end or [answer("Done.")])]


class Room:
    """Where one door is driven: a home, a project, a model's endpoint, and the record."""

    def __init__(self, top: Path, endpoint: Endpoint) -> None:
        self.project = self.here = top / "project"
        self.log = top / "log"
        self.endpoint = endpoint
        self.env = {
            "HOME": str(top / "home"),
            LOG: str(self.log),
            "OLLAMA_HOST": "127.0.0.1:9",
            "CROW_SANDBOX": "off",
        }
        self.options = ["--settings", str(self.project / "flags.json")]
        top.mkdir(parents=True)
        self.extensions = [str(HERE / "breaking.py")]
        for name in ("recorder.py", "inherited.py"):
            self.extensions.append(str(shutil.copy(HERE / "recorder.py", top / name)))
        for extension in self.extensions:
            self.options += ["--extension", extension]
        self._furnish(top)

    def _furnish(self, top: Path) -> None:
        home = top / "home" / ".claude"
        for path in FILES:
            file = home / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(MARKDOWN.format("helper" if "helper" in path else "greet"))
        self.project.mkdir()
        self._commit()
        (self.project / "watched.txt").touch()
        (self.project / "work.sh").write_text(WORK)
        for name, rules in ("flags.json", []), ("edited.json", ["Bash(false)"]):
            (self.project / name).write_text(json.dumps(self._settings(rules)))

    def _commit(self) -> None:
        """Make the project a repository, of which there can be working trees."""
        who = ("-c", "user.name=crow", "-c", "user.email=crow@localhost")
        for words in ("init", "-q"), (*who, "commit", "-q", "--allow-empty", "-m", "Begin"):
            subprocess.run(["git", *words], cwd=self.project, check=True)

    def _settings(self, more: list[str]) -> dict[str, Any]:
        asker = ["-SE", str(SERVER), json.dumps({"call": "ask", "ask": QUESTION})]
        tell = {"type": "command", "command": f'cat >> "${LOG}"'}
        return {
            "model": "scripted",
            "base_url": self.endpoint.url,
            "context_window": 50_000,
            "permissions": {"allow": ["Bash", "mcp__asker", *more], "deny": ["Write(denied.txt)"]},
            "mcpServers": {"asker": {"command": sys.executable, "args": asker}},
            "hooks": {name: [{"hooks": [tell]}] for name in EVENTS},
            "extensions": {
                "setup": {},
                "idle": {"after": 0.01},
                "mcp": {"wait": 60},
                "file_watcher": {"paths": ["watched.txt"]},
                "compaction": {"keep_turns": 1},
                "subagents": {"inherit": [*INHERITED, "inherited"]},
            },
        }

    def lines(self) -> list[dict[str, Any]]:
        """What was recorded."""
        return list(map(json.loads, self.log.read_text().splitlines())) if self.log.exists() else []

    def runs(self) -> int:
        """How many prompts are over."""
        return self.log.read_text().count(OVER) if self.log.exists() else 0

    def fired(self, since: int = 0, *, sub: bool = False) -> Firings:
        """What was recorded since so many lines, in a person's session or in sub-agents' ones."""
        heard = map(_heard, self.lines()[since:])
        return frozenset((event, by) for event, by, in_sub in heard if in_sub is sub)

    def uneven(self) -> list[tuple[str, str]]:
        """Pairs of events of which one fired more often: each prompt and call is followed up once."""
        lines = [line for line in self.lines() if line.get("by") == "recorder" and not line["sub"]]
        heard = [line["event"] for line in lines]
        pairs = [("before_run", "after_run"), ("before_tool", "after_tool")]
        return [pair for pair in pairs if heard.count(pair[0]) != heard.count(pair[1])]

    async def over(self, prompt: Awaitable[Any]) -> Any:
        """Wait for an answer, and for what follows it."""
        before = self.runs()
        reply = await prompt
        await self.until(lambda: self.runs() > before)
        return reply

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait for what another process writes."""
        async with asyncio.timeout(PATIENCE):
            while not is_so():  # noqa: ASYNC110 - no event tells of it
                await asyncio.sleep(0.01)

    async def talk(self, say: Say) -> None:
        """Have the whole conversation; its last prompt fails."""
        self.endpoint.play(*conversation())
        for prompt in ("/begin", *self.commands()):
            await self.over(say(prompt))
        self.endpoint.play(FAULT)
        with suppress(RequestError):
            await self.over(say("Go on"))

    def commands(self) -> list[str]:
        """Prompts that commands answer; each directory is a new one."""
        extra = self.project.with_name(f"extra{next(NUMBER)}")
        extra.mkdir()
        return [
            *("/model small", f"/add-dir {extra}", f"/cd {extra}", f"/cd {self.project}"),
            *(f"/worktree {extra.name}", "/worktree remove", f"/cd {self.project}"),
        ]

    # the doors

    async def embedded(self) -> dict[str, Firings]:
        """An agent in a program of one's own; what happens in it, one after another."""
        settings = load(self.project, file=self.options[1])
        agent = build(settings, cwd=self.project, extensions=self.extensions)
        person = Agreeing()
        fired: dict[str, Firings] = {}
        async with agent:
            session = await agent.new_session(self.project, client=person)
            fired["failed"] = await self.failed(agent, session)
            middle = len(self.lines())
            self.endpoint.play(answer("Hello."), FAULT)
            for prompt in (*self.commands(), "Hello", "Go on"):
                await self.over(agent.prompt(session, prompt))
            fired["cancelled"] = await self.cancelled(agent, session)
            await agent.close_session(session)
            fired["compacted"] = self.fired(middle)
            fired["main"] = self.fired()
            session = await agent.new_session(self.project, client=person)
            fired["command"] = await self.command(agent, session)
        fired["sub-agent"] = self.fired(sub=True)
        return fired

    async def command(self, agent: Agent, session: Session) -> Firings:
        """Prompts that commands answer."""
        self.endpoint.play(answer("Hello."), answer("Hello."), SUMMARY)
        for _ in range(2):
            await self.over(agent.prompt(session, "Hello"))
        begun = len(self.lines())
        await self._work("edit")
        for prompt in ("/help", "/compact", *self.commands(), "/break", "/clear"):
            await self.over(agent.prompt(session, prompt))
        await self._work("wait")
        await self.until(lambda: ("Notification", "settings") in self.fired(begun))
        return self.fired(begun)

    async def _work(self, task: str) -> None:
        process = await asyncio.create_subprocess_exec("sh", "work.sh", task, cwd=self.project)
        await process.wait()

    async def cancelled(self, agent: Agent, session: Session) -> Firings:
        """A prompt that is cancelled while a tool runs, after all the rest."""
        begun = len(self.lines())
        self.endpoint.play(*conversation(calls(bash("hang"))))
        turn = asyncio.create_task(self.over(agent.prompt(session, "/begin")))
        await self.until((self.project / "hangs").exists)
        assert await agent.configure(session, model="small") is None
        agent.cancel(session)
        reply = await turn
        assert reply.stop_reason == "cancelled"
        return self.fired(begun)

    async def failed(self, agent: Agent, session: Session) -> Firings:
        """A prompt that ends with the model's error, as its last sub-agent does."""
        begun = len(self.lines())
        self.endpoint.play(*conversation(calls(HELP), FAULT, FAULT))
        self.endpoint.asked.clear()
        turn = asyncio.create_task(self.over(agent.prompt(session, "/begin")))
        await self.endpoint.asked.wait()
        assert await agent.configure(session, model="small") is None
        reply = await turn
        assert reply.stop_reason == "error"
        return self.fired(begun)

    async def headless(self) -> dict[str, Firings]:
        """``crow run``; then ``crow run --continue``, which resumes the session."""
        await self._run("/begin", *conversation())
        middle = len(self.lines())
        await self._run("/begin", *conversation(), options=("--continue",))
        for prompt in self.commands():
            await self._run(prompt, options=("--continue",))
        await self._run("Go on", FAULT, options=("--continue",), status=1)
        return {"headless": self.fired(), "resumed": self.fired(middle)}

    async def _run(
        self, prompt: str, *script: Response, options: tuple[str, ...] = (), status: int = 0
    ) -> None:
        self.endpoint.play(*script)
        process = await asyncio.create_subprocess_exec(
            *(CROW, "run", prompt, *self.options, *options),
            cwd=self.here,
            env={**os.environ, **self.env},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        told, _ = await process.communicate()
        assert process.returncode == status, told.decode()
        match prompt.split():
            case ["/cd", there]:
                self.here = Path(there)
            case ["/worktree", name] if name != "remove":
                self.here = self.project.with_name(f"{self.project.name}.worktrees") / name
            case _:
                pass

    async def v1(self) -> dict[str, Firings]:
        """``crow acp`` in an editor, and a session that it loads."""
        editor = FakeEditor(answers=[agree])
        async with editor.spawned(CROW, "acp", *self.options, env=self.env, cwd=self.project):
            session = await editor.new_session(self.project)
            await self.talk(lambda text: editor.prompt(session, text))
            await editor.connection.close_session(session)
            middle = len(self.lines())
            await editor.connection.load_session(str(self.project), session)
            await self.talk(lambda text: editor.prompt(session, text))
            await editor.connection.close_session(session)
        return {"v1": self.fired(), "loaded": self.fired(middle)}

    async def v2(self) -> dict[str, Firings]:
        """``crow acp --protocol 2`` in an editor that speaks the draft."""
        draft = Draft()
        command = (CROW, "acp", "--protocol", "2", *self.options)
        async with draft.spawned(*command, env=self.env, cwd=self.project):
            session = await draft.new_session(self.project)
            await self.talk(lambda text: draft.turn(session, text))
            await draft.connection.close_session(session)
        return {"v2": self.fired()}

    async def listening(self) -> dict[str, Firings]:
        """``crow acp --listen``, over HTTP."""
        editor = FakeEditor(answers=[agree])
        async with self._served() as url, editor.dialed(url):
            session = await editor.new_session(self.project)
            await self.talk(lambda text: editor.prompt(session, text))
            await editor.connection.close_session(session)
        return {"listen": self.fired()}

    @asynccontextmanager
    async def _served(self) -> AsyncGenerator[str]:
        process = await asyncio.create_subprocess_exec(
            *(CROW, "acp", "--listen", "127.0.0.1:0", *self.options),
            cwd=self.project,
            env={**os.environ, **self.env},
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        told = (await process.stderr.readline()).decode()
        found = re.search(r"http://\S+", told)
        assert found, told + (await process.stderr.read()).decode()
        try:
            yield found[0]
        finally:
            process.terminate()
            await process.communicate()


Door = Callable[[Room], Awaitable[Fired]]
DOORS: tuple[Door, ...] = (Room.embedded, Room.headless, Room.v1, Room.v2, Room.listening)


def _heard(line: dict[str, Any]) -> tuple[str, str, bool]:
    """A line of the record: which event, who heard it, whether in a sub-agent's session."""
    if "hook_event_name" in line:
        return line["hook_event_name"], "settings", "agent_id" in line
    return line["event"], line["by"], line["sub"]


async def drive(top: Path, *doors: Door) -> Fired:
    """Go through doors, all at once; what was heard on each path."""
    async with asyncio.TaskGroup() as group:
        driven = [group.create_task(through(door, top / door.__name__)) for door in doors]
    return {path: fired for door in driven for path, fired in door.result().items()}


async def through(door: Door, top: Path) -> Fired:
    """Go through one door, in a room of its own."""
    async with Endpoint() as endpoint:
        room = Room(top, endpoint)
        with pytest.MonkeyPatch.context() as here:
            if door is Room.embedded:
                for name, value in room.env.items():
                    here.setenv(name, value)
            fired = await door(room)
        assert room.uneven() == []
        return fired
