"""The fixture ``crow``: the whole agent at work, and questions about what happened."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from crow.app.startup_warnings import unknown_extensions
from crow.core.errors import ExtensionError, nearest
from crow.core.events import ToolEnded, ToolStarted
from crow.core.hooks.context import Context
from crow.core.trace import USER, Record
from crow.core.verdicts import Answer, Ask, Deny, Stop
from crow.settings import load
from crow.testing.descriptions import about as words_of
from crow.testing.descriptions import is_of_test, short
from crow.testing.descriptions import record_line as happening
from crow.testing.descriptions import text as text_of
from crow.testing.user import Asked, ScriptedUser, described

if TYPE_CHECKING:
    from crow.core.agent import Agent
    from crow.core.hooks.run_context import Reply
    from crow.core.session import Session
    from crow.testing.model import Line, ScriptedModel

T = TypeVar("T")
BUILT_IN = "crow"
"""The source of what comes with Crow."""
PATIENCE = 2.0
"""Seconds in which hooks in the background may end."""
OPTIONS = ("allow", "deny", "env", "extensions", "model", "settings")
"""What `Pilot.configure` takes."""
LISTS = ("allow", "deny", "extensions")
PLACE = "what is set stands in settings="


class Pilot:
    """The whole agent with a scripted model and a scripted user, in an empty folder.

    ``use`` hangs extensions, ``run`` answers a prompt with what the model says to it, in one
    session all along. Then ``ran``, ``failed``, ``called``, ``denied``, ``asked``, ``told``,
    ``sent`` and ``prefix_stable`` say what happened: each returns what it found, and raises
    AssertionError with all that did happen where it found nothing, or not as many as ``times``;
    ``times=0`` is for what must not happen. ``model`` is the `ScriptedModel`, ``user`` the
    `ScriptedUser`, ``cwd`` the folder.

    In an async test: ``async with crow:`` and ``await crow.arun(...)``.
    """

    def __init__(self, build: Callable[..., Agent], cwd: Path) -> None:
        self.cwd = cwd
        self.user = ScriptedUser()
        self._session: Session | None = None
        self.records: list[Record] = []
        self._expected: list[Record] = []
        self._build = build
        self._options: dict[str, Any] = {}
        self._hooks: list[Any] = []
        self._runner: asyncio.Runner | None = None
        self._entered = self._configured = False
        self._started = False

    # doing

    def configure(self, *, settings: Mapping[str, Any] | None = None, **options: Any) -> None:
        """Say what the agent is made with: ``allow=["Bash"]``.

        ``settings`` become the user's settings file in the test's empty home: what a user would
        write there. ``allow``, ``deny``, ``extensions``, ``env`` and ``model`` are those of
        `crow.build`. Raises ``ValueError`` for settings that nobody knows, or that do not fit.
        """
        if self._started or "agent" in self.__dict__:
            raise RuntimeError("the agent is made: configure(...) comes before everything else")
        for name, value in options.items():
            if name not in OPTIONS:
                near = nearest(name, OPTIONS)
                hint = f"did you mean {near!r}?" if near else f"it takes {', '.join(OPTIONS)}"
                raise TypeError(f"configure has no {name!r}; {hint}")
            if name in LISTS and isinstance(value, str | Mapping):
                hint = f"[{value!r}]" if isinstance(value, str) else f"{PLACE}{{{name!r}: {{...}}}}"
                raise TypeError(f"{name} takes a list: {hint}")
        if settings is not None:
            path = Path.home() / ".crow" / "settings.json"
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(settings), "utf-8")
            self._configured = True
            _refuse(load(self.cwd).problems)
        self._options |= options

    def use(self, *things: Any, **options: Any) -> None:
        """Hang extensions of any sort: objects, classes, modules, functions, files by their paths.

        ``options`` are those of a class. A file is loaded as ``crow run --extension`` loads it, and
        has the options that the settings have for its name.
        """
        for thing in things:
            if isinstance(thing, str | os.PathLike):
                self._name(os.fspath(cast("str | os.PathLike[str]", thing)))
            elif options or "agent" in self.__dict__:
                self.agent.use(thing, **options)
            else:
                self._hooks.append(thing)

    def _name(self, spec: str) -> None:
        if self._started or "agent" in self.__dict__:
            raise RuntimeError("the agent is made: a file is used before everything else")
        path = Path(spec)
        if path.suffix == ".py" and not path.is_file():
            beside = f"beside the test it is Path(__file__).with_name({path.name!r})"
            raise FileNotFoundError(f"there is no file {path.absolute()}: {beside}")
        named = self._options.get("extensions", ())
        self._options["extensions"] = [*named, str(Path(spec).absolute())]

    @cached_property
    def agent(self) -> Agent:
        """The agent; made when it is first asked for."""
        __tracebackhide__ = True
        agent = self._build(cwd=self.cwd, hooks=self._hooks, **self._options)
        agent.hooks.watchers.append(self._watch)
        return agent

    @property
    def session(self) -> Session:
        """The conversation. Raises ``RuntimeError`` before the first prompt, and of other faces."""
        if self._session is None:
            raise RuntimeError("there is no session in this process: crow.run(...) begins one")
        return self._session

    @property
    def model(self) -> ScriptedModel:
        """The model; ``asked`` is what it was sent."""
        return cast("ScriptedModel", self.agent.llm)

    def run(self, prompt: str, *script: Line) -> Reply:
        """Answer a prompt; the model plays the script.

        Raises what the run failed with, and AssertionError for a question without an answer.
        """
        __tracebackhide__ = True
        if self._entered or _has_loop():
            raise RuntimeError("this test is async: `async with crow:`, `await crow.arun(...)`")
        try:
            self._learn(*script)
            return self._run(self._answer(prompt))
        except (AssertionError, ExtensionError) as error:  # the test's line says it, not the loop's
            raise error.with_traceback(None) from None

    def arun(self, prompt: str, *script: Line) -> Coroutine[Any, Any, Reply]:
        """Do as `run` does, in an async test; the script of one that nobody awaits is left over."""
        __tracebackhide__ = True
        if not self._entered:
            raise RuntimeError("`async with crow:` comes before `await crow.arun(...)`")
        self._learn(*script)
        return self._answer(prompt)

    def _learn(self, *script: Line) -> None:
        """Let the model know its lines, once the settings are found to fit."""
        if self._session is None and self._configured:
            self._refuse_options()
        self.model.extend(*script)

    async def _answer(self, prompt: str) -> Reply:
        __tracebackhide__ = True
        if self._session is None:
            self._session = await self.agent.new_session(self.cwd, client=self.user)
        try:
            reply = await self.agent.run(prompt, session=self._session)
            while queued := [each for each in self._session.tasks if _is_prompt(each)]:
                await asyncio.wait(queued)
                await asyncio.sleep(0)
        finally:
            self.user.check()
        return reply

    def close(self) -> None:
        """End the session and the agent; done at the end of the test if not before."""
        if self._runner is not None:
            self._run(self._close())
            self._runner.close()
            self._runner = None

    def verify(self) -> None:
        """Raise AssertionError for answers that were not used up, and hooks that failed unasked."""
        __tracebackhide__ = True
        self.user.verify()
        if failures := [each for each in self._failures if each not in self._expected]:
            told = "".join(f"\n  {happening(each)}" for each in failures)
            raise AssertionError(f"hooks failed, and no crow.failed(...) asked for it:{told}")

    @property
    def _failures(self) -> list[Record]:
        return [each for each in self.records if each.error and each.owner not in self._built_in]

    def _refuse_options(self) -> None:
        """Raise ``ValueError`` for what the settings say of extensions that does not fit."""
        __tracebackhide__ = True
        wrong = [line for found in self.agent.found for line in found.problems]
        _refuse([*unknown_extensions(load(self.cwd), self.agent), *wrong])

    async def _close(self) -> None:
        """End the agent once hooks in the background had a moment to end themselves."""
        tasks = self._session.tasks if self._session else ()
        if beside := [each for each in tasks if _works_as(each, "beside")]:
            await asyncio.wait(beside, timeout=PATIENCE)
        if "agent" in self.__dict__:
            await self.agent.close()

    def _run(self, work: Any) -> Any:
        __tracebackhide__ = True
        self._runner = self._runner or asyncio.Runner()
        return self._runner.run(work)

    async def __aenter__(self) -> Self:
        self._entered = True
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    def _watch(self, record: Record, ctx: Context) -> None:
        if is_of_test(self.agent, record, ctx):
            self.records.append(record)

    # asking what happened

    def ran(self, event: str, by: str = "", *, times: int | None = None) -> list[Record]:
        """What hooks did at an event: those of ``by``, or of all that do not come with Crow."""
        __tracebackhide__ = True
        self._know_event(event)
        if by:
            known = {each.name for each in self.agent.hooks.owners}
            self._know("extension", by, known | {each.owner for each in self.records})
        whose = f"a hook of {by}" if by else "a hook"
        found = [
            record
            for record in self.records
            if record.event == event
            and (record.owner == by if by else record.owner not in self._built_in)
        ]
        return self._found(f"{whose} ran at {event}", found, times)

    def failed(self, words: str = "", by: str = "", *, times: int | None = None) -> list[Record]:
        """The failures of hooks with these words in their error, of ``by`` where that is said.

        A failure that nobody has asked for fails the test at its end.
        """
        __tracebackhide__ = True
        found = [each for each in self._failures if words in str(each.error)]
        found = [each for each in found if by in ("", each.owner)]
        self._expected += found
        whose = f"a hook of {by}" if by else "a hook"
        return self._found(f"{whose} failed{f' with {words!r}' if words else ''}", found, times)

    def called(self, tool: str, /, *, times: int | None = None, **args: Any) -> list[ToolEnded]:
        """The calls of a tool that have ended, those with these arguments where some are given.

        The arguments are those that it ran with, as hooks have left them.
        """
        __tracebackhide__ = True
        with_args = f" with {args}" if args else ""
        return self._found(f"{tool} was called{with_args}", self._calls(tool, args), times)

    def denied(
        self, tool: str, reason: str = "", /, *, times: int | None = None, **args: Any
    ) -> list[ToolEnded]:
        """The calls of a tool that were denied, for a reason with these words where some are."""
        __tracebackhide__ = True
        found = [
            call
            for call in self._calls(tool, args)
            if call.outcome == "denied" and reason in call.result.text
        ]
        why = f" because of {reason!r}" if reason else ""
        return self._found(f"{tool} was denied{why}", found, times)

    def asked(self, about: str = "", *, times: int | None = None) -> list[Asked]:
        """What the user was asked that has these words in it, such as the name of a tool."""
        __tracebackhide__ = True
        found = [each for each in self.user.asked if about in described(each)]
        return self._found(f"the user was asked{words_of(about)}", found, times)

    def told(self, text: str, *, times: int | None = None) -> list[str]:
        """What the user was told that has this text in it: answers and notices."""
        __tracebackhide__ = True
        found = [line for line in self.user.lines if text in line]
        lines = [f"told: {line}" for line in self.user.lines]
        return self._found(f"the user was told {text!r}", found, times, lines)

    def sent(self, text: str, *, times: int | None = None) -> list[str]:
        """The messages with this text that the model was sent: prompts, context, results."""
        __tracebackhide__ = True
        asked = self.model.asked[-1]["messages"] if self.model.asked else []
        texts = [f"{each['role']}: {text_of(each.get('content'))}" for each in asked]
        found = [each for each in texts if text in each]
        lines = [f"sent: {each}" for each in texts if not each.startswith("system")]
        return self._found(f"the model was sent {text!r}", found, times, lines)

    def prefix_stable(self) -> None:
        """Raise AssertionError where a request began otherwise than the one before it."""
        __tracebackhide__ = True
        self.model.verify_prefix()

    @property
    def lines(self) -> list[str]:
        """What happened, a line each: what hooks did, what was asked, how calls ended."""
        told = [happening(record) for record in self.records if self._tells(record)]
        asked = [f"asked: {described(each)}" for each in self.user.asked]
        calls = [
            f"call: {call.call.name} {call.call.args}{self._became(call)}: {call.outcome}: "
            f"{call.result.text}"
            for call in self._ended
        ]
        return [*told, *asked, *calls]

    @property
    def _ended(self) -> list[ToolEnded]:
        return [event for event in self.user.told if isinstance(event, ToolEnded)]

    def _args(self, call: ToolEnded) -> dict[str, Any]:
        """What a call ran with; where it did not run, what the model sent."""
        started = [each for each in self.user.told if isinstance(each, ToolStarted)]
        ran = (each.args for each in reversed(started) if each.call.id == call.call.id)
        return next(ran, call.call.args)

    def _became(self, call: ToolEnded) -> str:
        args = self._args(call)
        return f", which became {args}" if args != call.call.args else ""

    @property
    def _built_in(self) -> set[str]:
        owners = self.agent.hooks.owners
        return {USER, *(each.name for each in owners if each.source == BUILT_IN)}

    def _tells(self, record: Record) -> bool:
        """True for what hooks under test did, and for what others decided."""
        decided = isinstance(record.answer, Answer | Ask | Deny | Stop) or record.error
        return record.event != "on_update" and bool(
            decided or record.owner not in self._built_in or record.owner == USER
        )

    def _calls(self, tool: str, args: dict[str, Any]) -> list[ToolEnded]:
        __tracebackhide__ = True
        found = [call for call in self._ended if call.call.name == tool]
        if not found:
            session = self._session
            self._know("tool", tool, self.agent.tools_of(session) if session else self.agent.tools)
        return [call for call in found if args.items() <= self._args(call).items()]

    def _know_event(self, event: str) -> None:
        __tracebackhide__ = True
        points = self.agent.hooks.points
        for name, point in points.items():
            if event != name and event in point.point.names:
                raise AssertionError(f"{event} is another name of the event {name!r}")
        self._know("event", event, points)

    def _know(self, noun: str, name: str, known: Iterable[str]) -> None:
        """Raise AssertionError for what does not exist, with the name that may be meant."""
        __tracebackhide__ = True
        if name not in known:
            near = nearest(name, known)
            hint = f"did you mean {near!r}?" if near else f"there are {', '.join(known)}"
            raise AssertionError(f"there is no {noun} {name!r}; {hint}")

    def _found(
        self, what: str, found: list[T], times: int | None, lines: list[str] | None = None
    ) -> list[T]:
        """What was found. Raises AssertionError where that is not as much as there should be."""
        __tracebackhide__ = True
        if len(found) == times or (found and times is None):
            return found
        often = "" if times is None else f" {times} times, and not {len(found)},"
        happened = "".join(f"\n  {short(line)}" for line in lines or self.lines) or " nothing"
        raise AssertionError(f"expected{often} that {what}; what happened:{happened}")


def _refuse(problems: Iterable[str]) -> None:
    """Raise ``ValueError`` for what is wrong with settings."""
    __tracebackhide__ = True
    if told := "; ".join(problems):
        raise ValueError(f"the settings do not fit: {told}")


def _is_prompt(task: asyncio.Task[Any]) -> bool:
    """True for a prompt that a hook has queued, and for what follows one."""
    return task.get_name() == "after_run" or _works_as(task, "queued")


def _works_as(task: asyncio.Task[Any], name: str) -> bool:
    return getattr(getattr(task, "work", None), "__name__", "") == name


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
