"""One tool call: judged, run, settled; what its hooks see and the tool has at hand."""

from __future__ import annotations

import asyncio
import copy
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from crow.core.calls import Call, Diff, Location, Outcome, ToolKind, ToolResult, mismatch
from crow.core.errors import CrowError, HookError, told
from crow.core.events import ToolEnded, ToolProgress
from crow.core.ports import Option, Tool
from crow.core.reach import Context
from crow.core.shapes import json_object
from crow.core.verdicts import Ask, Ruling, Stop
from crow.core.view import lend, working

if TYPE_CHECKING:
    from crow.core.context import RunContext

NOT_RUN = "not run: the run was stopped before"
CANCELLED = "cancelled by the user"


class ToolContext(Context):
    """One tool call: ``args`` are what runs, ``result`` is what the model is told.

    ``outcome`` is ``ok``, ``error``, ``denied``, ``answered`` (a hook answered for the tool) or
    ``cancelled``; ``duration`` is in seconds. ``faulty`` says that the call could not run at all:
    no such tool, or arguments that are no JSON or do not fit the schema. ``question`` is
    what the user is about to be asked, at ``on_permission``. While the tool runs this is its
    `Bench`.
    """

    __slots__ = (
        "approved",
        "args",
        "call",
        "diffs",
        "duration",
        "ended",
        "faulty",
        "options",
        "outcome",
        "question",
        "reason",
        "result",
        "settled",
        "tool",
    )

    shapes = {"args": json_object, "result": ToolResult}  # noqa: RUF012 - a table
    kept = ("args",)

    run: RunContext

    def __init__(self, run: RunContext, call: Call, tool: Tool | None) -> None:
        super().__init__(run.agent, run.session, run)
        self.call = call
        self.tool = tool
        self.args: dict[str, Any] = copy.deepcopy(call.args)
        self.approved = self.args
        self.result: ToolResult | None = None
        self.outcome: Outcome = "ok"
        self.duration = 0.0
        self.options: Sequence[Option] = ()
        self.reason = ""
        self.question: Ask | None = None
        self.diffs: tuple[Diff, ...] = ()
        self.settled = self.ended = False
        self.faulty = False

    @property
    def block(self) -> Call:
        """The call, by the name that the third essay gives it."""
        return self.call

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.call.name

    @property
    def output(self) -> str:
        """The text of the result."""
        return self.result.text if self.result else ""

    @property
    def error(self) -> str | None:
        """The text of the result where it is an error."""
        return self.output if self.outcome == "error" else None

    @property
    def title(self) -> str:
        """The call in a line that a person reads."""
        return str(self._ask_tool("title", self.args) or self.call.name)

    @property
    def kind(self) -> ToolKind:
        """What sort of tool it is."""
        return getattr(self.tool, "kind", "other")

    @property
    def locations(self) -> tuple[Location, ...]:
        """The files that the call is about."""
        return tuple(self._ask_tool("locations", self.args, self.cwd) or ())

    def _ask_tool(self, member: str, *arguments: Any) -> Any:
        """What an optional member of the tool answers; None without it, or for odd arguments."""
        try:
            return getattr(self.tool, member)(*arguments)
        except Exception:  # noqa: BLE001 - the model may have sent anything
            return None

    async def progress(self, text: str, *, terminal: str | None = None) -> None:
        """Show output of the call while it runs."""
        await self.emit(ToolProgress(self.call.id, text, terminal))

    def prepare(self) -> bool:
        """Make the arguments what hooks are to see; False where the call cannot run at all."""
        if self.call.fault is not None:
            self.refuse(self.call.fault)
        elif self.tool is None:
            names = ", ".join(sorted(self.agent.tools_of(self.session)))
            self.refuse(f"there is no tool {self.call.name!r}; there are: {names}")
        else:
            prepared = self._ask_tool("prepare", self.args, self.cwd)
            self.args = self.args if prepared is None else prepared
        return self.result is None

    def check(self) -> bool:
        """Hold the final arguments against the tool's schema; False where they do not fit."""
        tool = self.tool
        assert tool is not None
        own = getattr(tool, "check", None)
        wrong = own(self.args) if own is not None else mismatch(tool.parameters, self.args)
        if wrong:
            self.refuse(f"{self.call.name}: {wrong}")
        return not wrong

    async def foresee(self) -> bool:
        """Ask the tool what the call would do; False where it cannot but fail, and has.

        What an earlier call of the same reply is still to do to the same file, nobody can tell.
        """
        try:
            told = await getattr(self.tool, "preview")(copy.deepcopy(self.args), self)  # noqa: B009
        except Exception:  # noqa: BLE001 - a tool without it, or with a faulty one, is asked about
            told = None
        if not isinstance(told, ToolResult) or (told.error and self._comes_second):
            return True
        self.diffs = told.diffs
        if told.error:
            self.conclude("error", told)
        return not told.error

    @property
    def _comes_second(self) -> bool:
        """True where a call that is about the same file waits to run before this one."""
        mine = {place.path for place in self.locations}
        before = itertools.takewhile(lambda call: call is not self, self.run.open)
        waiting = (call for call in before if call.result is None)
        return any(place.path in mine for call in waiting for place in call.locations)

    def refuse(self, fault: str) -> None:
        """Conclude a call that cannot run at all."""
        self.faulty = True
        self.conclude("error", ToolResult.failure(fault))

    def rule(self, ruling: Ruling) -> None:
        """Conclude a call that must not run, or that a hook answered; keep what was approved."""
        self.approved = copy.deepcopy(self.args)
        if isinstance(ruling.verdict, Stop):
            self.stop(ruling.reason)
        if ruling.refused:
            self.conclude("denied", ToolResult.failure(ruling.reason or "denied by a hook"))
        elif ruling.answer is not None:
            self.conclude("answered", ToolResult.of(ruling.answer.value))

    async def execute(self) -> ToolResult:
        """Run the tool; the innermost of ``around_tool``. What runs is what was approved."""
        assert self.tool is not None
        if self.settled or self.result is not None:
            raise HookError(f"{self.call.name} does not run: the call is over")
        if self.args != self.approved:
            raise RuntimeError("a hook changed the arguments after they had been judged")
        bench = lend(self, self.call.name, "a tool's work")
        try:
            with working(bench):
                return ToolResult.of(await self.tool.run(copy.deepcopy(self.approved), bench))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self.run.cancelled or (task is not None and task.cancelling()):
                raise
            raise RuntimeError("the tool was cancelled by its own code") from None
        except SystemExit as error:
            raise RuntimeError(f"the tool wanted to end the program: exit {error}") from None

    def succeed(self, value: object) -> None:
        """Conclude with what the tool, or a hook around it, returned."""
        result = ToolResult.of(value)
        self.conclude("error" if result.error else "ok", result)

    async def fail_with(self, error: Exception) -> None:
        """Conclude with what the tool raised."""
        text = told(error)
        named = text if isinstance(error, CrowError) else f"{type(error).__name__}: {text}"
        self.conclude("error", ToolResult.failure(named))
        await self.fail(error, "tool")

    def conclude(self, outcome: Outcome, result: ToolResult | str) -> ToolResult:
        """Give the call its outcome; the first one stands."""
        if self.result is None:
            self.outcome = outcome
            self.result = ToolResult.of(result)
        return self.result

    async def settle(self) -> None:
        """Say what came of the call; one without a result was cancelled.

        Hooks hear of it once; the client does even where the run is cancelled meanwhile.
        """
        if not self.settled:
            self.settled = True
            self.conclude("cancelled", CANCELLED if self.run.cancelled else NOT_RUN)
            await self.agent.hooks.after_tool.fire(self)
        if not self.ended:
            result = self.conclude("cancelled", NOT_RUN)
            await self.emit(ToolEnded(self.call, self.outcome, result, self.duration))
            self.ended = True
