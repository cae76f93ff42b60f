"""Recorded sessions as tests: what the model said is played again, and what comes of it compared.

crow eval record SESSION FILE   write a stored session as a recording
crow eval run FILE...           play recordings in fresh folders, with the real tools and hooks

What a recording calls for is really done, with the answers that its user gave: play only what you
would run by hand. Exit status: 0 nothing differs, 1 something does, 2 usage.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections.abc import AsyncGenerator, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

from crow._version import __version__
from crow.cli.explain import ORDER, Called, calls_of, table
from crow.cli.interrupt import run_async
from crow.cli.options import agent_of, declare_agent, settings_of, tell_problems
from crow.cli.output import Output
from crow.cli.parser import Parser, UsageError, no_such
from crow.cli.prompt_run import idle
from crow.cli.session_lookup import store_of, store_with, whole_id
from crow.core.errors import CrowError, ModelError
from crow.core.events import TextDelta
from crow.core.messages import is_prompt
from crow.core.ports.client import NullClient, PermissionRequest
from crow.core.ports.llm import Completion, Delta, Request
from crow.core.secrets import scrubbed
from crow.core.tools import Call
from crow.core.trace import USER
from crow.ports.stores import ExportStore
from crow.project.trust import TOOLS

if TYPE_CHECKING:
    from crow.core.agent import Agent

TAKES = {"record": "SESSION FILE", "run": "FILE..."}
CWD = "<cwd>"
"""What stands for the session's directory."""
VERDICTS = (*ORDER, "continue")
UNTOLD = frozenset({".git", "__pycache__", ".venv", "node_modules", *TOOLS})
"""Folders whose contents differ from run to run."""
Step = dict[str, Any]


def declare(parser: Parser) -> None:
    """The options of ``crow eval``."""
    parser.add_argument("action", metavar="ACTION", help=" or ".join(TAKES))
    parser.add_argument("words", metavar="SESSION|FILE", nargs="*")
    parser.add_argument(
        "--files", metavar="DIR", help="record: the files that were there when the session began"
    )
    parser.add_argument("--update", action="store_true", help="run: rewrite what differs")
    parser.add_argument(
        "--end", action="store_true", help="run: compare the files and how it ended, no calls"
    )
    declare_agent(parser)


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow eval``."""
    if options.action not in TAKES:
        raise UsageError(f"{no_such('action', options.action, TAKES)} (crow eval --help)")
    count = len(options.words)
    if not count or (options.action == "record" and count != 2):
        raise UsageError(f"crow eval {options.action} {TAKES[options.action]} is how to say it")
    if options.action == "record":
        return run_async(record(options, out))
    return max(run(Path(name), options, out) for name in options.words)


async def record(options: argparse.Namespace, out: Output) -> int:
    """Write a stored session into a file."""
    session, name = options.words
    if options.files and not Path(options.files).is_dir():
        raise UsageError(f"there is no directory {options.files!r}: --files takes one that exists")
    agent = agent_of(options, settings_of(options))
    async with agent:
        store = store_of(agent)
        lines = await store_with(store, ExportStore).export(await whole_id(store, session))
        steps = list(steps_of(lines.splitlines()))
    cwd = json.loads(lines.partition("\n")[0])["cwd"]
    steps[0]["files"] = given(Path(options.files)) if options.files else {}
    write(Path(name), scrubbed(renamed(steps, cwd, CWD), agent.secrets))
    out.line(f"{name}: {len(steps)} steps; crow eval run {name} plays them")
    return 0


def run(path: Path, options: argparse.Namespace, out: Output) -> int:
    """Play one recording and say what differs first."""
    old = read(path)
    new = run_async(play(old, options, out))
    wrong = difference(old, new, end_only=options.end)
    if options.update and old != new:
        write(path, new)
        out.line(f"updated  {path}")
    elif not wrong:
        note = "" if old[-1]["files"] is not None else " (its files are not known: --update)"
        out.line(f"ok       {path}{note}")
    else:
        out.line(f"differs  {path}:{wrong[0]}", "red")
        for word, step in zip(("recorded", "now"), wrong[1:], strict=True):
            out.line(f"  {word + ':':9} {step_line(step)}")
    return int(bool(wrong) and not options.update)


# the file


def read(path: Path) -> list[Step]:
    """The steps of a recording. Raises `CrowError` for what is none."""
    try:
        steps = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        if (steps[0]["kind"], steps[0]["v"], steps[-1]["kind"]) != ("head", 1, "end"):
            raise ValueError("it begins with no head of version 1, or has no end")
        for name in map(Path, steps[0]["files"]):
            if name.is_absolute() or ".." in name.parts:
                raise ValueError(f"the file {name} lies outside")
    except OSError as error:
        raise CrowError(f"{path}: {error.strerror}") from error
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise CrowError(f"{path} is no recording: {type(error).__name__}: {error}") from error
    return steps


def write(path: Path, steps: Iterable[Step]) -> None:
    """Write steps, one a line."""
    lines = (json.dumps(step, ensure_ascii=False, sort_keys=True) for step in steps)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def renamed(value: Any, old: str, new: str) -> Any:
    """JSON with another directory in all of its texts."""
    text = json.dumps(value)
    before, after = json.dumps(old)[1:-1], json.dumps(new)[1:-1]
    return json.loads(re.sub(re.escape(before) + r"(?![\w.-])", lambda _: after, text))


def given(folder: Path) -> dict[str, str]:
    """The texts of a folder's files. Raises `CrowError` for one that is no text."""
    texts: dict[str, str] = {}
    for name, path in files_in(folder):
        try:
            texts[name] = path.read_text("utf-8")
        except ValueError:
            raise CrowError(f"{path} is no text: a recording begins with texts only") from None
    return texts


def files_in(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files of a folder by their names there, but those of `UNTOLD` folders."""
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.is_file() and not UNTOLD & {*inside.parts}:
            yield inside.as_posix(), path


def hashed(data: bytes) -> str:
    """What stands for a file."""
    return hashlib.sha256(data).hexdigest()[:16]


# a session as steps


def steps_of(lines: list[str]) -> Iterator[Step]:
    """An exported session as steps: each reply, and behind it its calls one after another."""
    head = json.loads(lines[0])
    yield {"kind": "head", "v": 1, "crow": __version__, "mode": head["mode"], "files": {}}
    calls = iter(calls_of(lines[1:])[0])
    last: Step = {}
    for row in map(json.loads, lines[1:]):
        data = table(row["data"])
        match row["kind"], data.get("role"):
            case "message", "user" if is_prompt(cast("Any", data)):
                last = {"kind": "user", "content": data["content"]}
                yield last
            case "message", "assistant":
                own = [next(calls) for _ in data.get("tool_calls", ())]
                last = reply_of(data, own)
                yield last
                for call in own:
                    yield from steps_of_call(call)
            case "hooks", _:
                beside = (each for each in data["records"] if not each.get("call_id"))
                yield from filter(None, map(hook_of, beside))
            case _:
                pass
    stop = "end_turn" if last.get("kind") == "reply" and not last["calls"] else None
    yield {"kind": "end", "stop": stop, "files": None}


def reply_of(data: dict[str, Any], calls: list[Called]) -> Step:
    """What the model said."""
    made = [{"id": f"call_{c.number}", "name": c.name, "args": c.asked} for c in calls]
    return {"kind": "reply", "text": data.get("content") or "", "calls": made}


def steps_of_call(call: Called) -> Iterator[Step]:
    """What hooks and the user said to a call, and what came of it."""
    about = {"call": f"call_{call.number}"}
    for each in call.records:
        if each["owner"] == USER:
            yield {"kind": "ask", **about, "answer": each["hook"]}
        elif step := hook_of(each):
            yield {**step, **about}
    ran = (call.started or {}).get("args")
    yield {"kind": "call", **about, "name": call.name, "args": ran, "outcome": call.outcome}


def hook_of(record: dict[str, Any]) -> Step | None:
    """What a hook did, as far as that is compared; None where nothing is."""
    verdict = table(record.get("answer")).get("type")
    did = {
        "verdict": verdict if verdict in VERDICTS else None,
        "changed": sorted(record.get("changed", ())),
        "failed": bool(record.get("error")),
    }
    did = {name: value for name, value in did.items() if value}
    point = {"kind": "hook", "point": record["event"], "owner": record["owner"]}
    return {**point, **did} if did else None


# played again


class Recorded:
    """A model that says what was said in a recording, to one session."""

    model = "recorded"
    context_window: int | None = None

    def __init__(self, replies: Iterable[Step]) -> None:
        self.session_id = ""
        self._replies = iter(replies)

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Completion, None]:
        """Say what was said next. Raises `ModelError` where that is nothing."""
        if request.session_id != self.session_id:
            raise ModelError("only what the session's own model said was recorded")
        reply = next(self._replies, None)
        if reply is None:
            raise ModelError("the recording has no more replies")
        calls = tuple(Call(c["id"], c["name"], c["args"]) for c in reply["calls"])
        if reply["text"]:
            yield TextDelta(reply["text"], request.message_id)
        finish = "tool_calls" if calls else "stop"
        yield Completion(reply["text"], calls, finish=finish, model=self.model)


class Answers(NullClient):
    """A client whose user gives the answers that were recorded, and none where there is none."""

    answers = True

    def __init__(self, asks: Iterable[Step]) -> None:
        self._given = {each["call"]: each["answer"] for each in asks}

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        """The answer to this call's question."""
        return self._given.get(request.call.id)


async def play(steps: list[Step], options: argparse.Namespace, out: Output) -> list[Step]:
    """Play a recording in a fresh folder; the steps of the session that comes of it."""
    with TemporaryDirectory(prefix="crow-eval-") as place:
        folder = Path(place).resolve() / "project"
        before = steps[0]["files"]
        for name, text in before.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, "utf-8")
        folder.mkdir(exist_ok=True)
        options.extensions = {"persistence": {"db_path": str(folder.parent / "crow.db")}}
        settings = replace(settings_of(options), reader=None)  # those of here, not of the folder
        agent = agent_of(options, settings)
        tell_problems(settings, agent, out)
        judge: Any = agent.extensions.get("permissions")
        if judge is not None:
            judge.save = None  # "always" lasts as long as the session: nothing is kept here
        lines, stop = await play_in(folder, agent, renamed(steps, CWD, str(folder)), out)
        new = renamed(list(steps_of(lines)), str(folder), CWD)
        now = {name: hashed(path.read_bytes()) for name, path in files_in(folder)}
    new[0] |= {"mode": steps[0]["mode"], "files": before}
    then = {name: hashed(text.encode()) for name, text in before.items()}
    changed = {name for name in now | then if now.get(name) != then.get(name)}
    new[-1] |= {"stop": stop, "files": {name: now.get(name) for name in changed}}
    return new


async def play_in(
    folder: Path, agent: Agent, steps: list[Step], out: Output
) -> tuple[list[str], str]:
    """Play steps; the session as it was stored, and why it ended."""
    agent.llm = model = Recorded(each for each in steps if each["kind"] == "reply")
    client = Answers(each for each in steps if each["kind"] == "ask")
    stop = ""
    async with agent:
        session = await agent.new_session(folder, client=client, mode=steps[0]["mode"])
        model.session_id = session.id
        for prompt in (each for each in steps if each["kind"] == "user"):
            reply = await agent.prompt(session, prompt["content"])
            stop = reply.stop_reason
            if reply.error is not None:
                out.error(reply.detail)
            await idle(session)
        lines = await store_with(store_of(agent), ExportStore).export(session.id)
    return lines.splitlines(), stop


# what differs


def difference(
    old: list[Step], new: list[Step], *, end_only: bool
) -> tuple[int, Step | None, Step | None] | None:
    """The number of the first step that differs, as it was and as it is; None where none does."""
    if not end_only:
        longer = max(len(old), len(new)) - 1
        for at in range(1, longer):
            was = old[at] if at < len(old) - 1 else None
            now = new[at] if at < len(new) - 1 else None
            if compared(was) != compared(now):
                return at + 1, was, now
    was, now = old[-1], new[-1]
    if any(was[name] not in (None, now[name]) for name in ("stop", "files")):
        return len(old), was, now
    return None


def compared(step: Step | None) -> Step | None:
    """A step without its texts."""
    if step is None or step["kind"] not in ("user", "reply"):
        return step
    return {"kind": step["kind"], "calls": step.get("calls")}


def step_line(step: Step | None) -> str:
    """A step in a line."""
    if step is None:
        return "nothing more"
    rest = {name: value for name, value in step.items() if name != "kind" and value}
    return f"{step['kind']} {json.dumps(rest, ensure_ascii=False, sort_keys=True)}"
