"""The tool by which the model has an extension used that it wrote."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from crow import Ask, ToolResult
from crow.dataclasses import frozen
from crow.errors import ExtensionError
from crow.events import REJECT_ONCE, CommandsChanged, Option
from crow.extensions.authoring.outline import fault_of, outline, summary
from crow.tools import Diff, Location

if TYPE_CHECKING:
    from crow import ToolContext, ToolEnvironment
    from crow.project import Proposals
    from crow.tools import ToolKind

NAME = "LoadExtension"
DESCRIPTION = (
    "Have the user look at an extension of Crow that is one Python file, and use it at once if "
    "they agree. Call it again when you have changed the file."
)
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"file_path": {"type": "string"}},
    "required": ["file_path"],
    "additionalProperties": False,
}
LARGEST = 100_000
"""Characters that a person is asked to read."""
OPTIONS = (
    Option("until_end", "Use it until Crow ends", "allow_once"),
    Option("keep", "Use it whenever Crow runs", "allow_always"),
    REJECT_ONCE,
)
WITHIN = "it must be a .py file in the working directories or among the user's own extensions"
WHAT = "it is code that runs inside of Crow, in no sandbox"


@frozen
class Proposal:
    """A proposal to put an extension into use: the very text that the user is shown."""

    path: Path
    text: str = ""
    fault: str = ""


class LoadExtension:
    """Shows the user an extension, and puts it into use with their consent, by `Proposals`.

    No rule, hook or mode answers for them. What they have agreed to is loaded, whatever the file
    says by then.
    """

    name = NAME
    description = DESCRIPTION
    parameters = PARAMETERS
    kind: ToolKind = "execute"

    def __init__(self, proposals: Proposals) -> None:
        self._proposals = proposals
        self._proposed: dict[str, Proposal] = {}
        self._answers: dict[str, str] = {}

    def title(self, args: dict[str, Any]) -> str:
        """The extension's name."""
        return f"Use the extension {Path(str(args['file_path'])).stem}"

    def prepare(self, args: dict[str, Any], cwd: str) -> dict[str, Any]:
        """The path, absolute and without links."""
        path = os.path.join(cwd, os.path.expanduser(str(args["file_path"])))  # noqa: PTH118
        return {**args, "file_path": os.path.realpath(path)}

    def locations(self, args: dict[str, Any], cwd: str) -> tuple[Location, ...]:
        """The file."""
        del cwd
        return (Location(str(args["file_path"])),)

    def judge(self, call: ToolContext) -> Ask | None:
        """The question that only the user answers; none about what cannot be used."""
        proposal = self._proposed[call.call.id] = self._read(call)
        if proposal.fault:
            return None
        held = outline(proposal.text, call.agent.hooks.names)

        def answered(option: str) -> None:
            self._answers[call.call.id] = option

        return Ask(
            f"{WHAT}. {summary(held)}",
            rule=f"{NAME} is asked about in every mode",
            options=OPTIONS,
            answered=answered,
        )

    async def preview(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult:
        """What would be new, or why it cannot be used."""
        del args
        proposal = self._proposed[ctx.call.id]
        if proposal.fault:
            return ToolResult.failure(proposal.fault)
        diff = Diff(str(proposal.path), self._proposals.in_use(proposal.path), proposal.text)
        return ToolResult("", diffs=(diff,))

    async def run(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult:
        """Put it into use as the user has answered."""
        del args
        call = cast("ToolContext", ctx)
        proposal = self._proposed.pop(call.call.id)
        answer = self._answers.pop(call.call.id, None)
        fault = proposal.fault or self._proposals.refusal(call.session, proposal.path)
        if fault or answer is None:
            return ToolResult.failure(fault or "the user was not asked")
        keep = answer == "keep"
        try:
            found = await self._proposals.load(proposal.path, proposal.text, keep=keep)
        except (ExtensionError, OSError) as error:
            return ToolResult.failure(f"it is not in use: {error}")
        lasts = f"whenever Crow runs ({found.source})" if keep else "until Crow ends"
        await call.emit(CommandsChanged())
        return ToolResult(f"{found.name} is in use, {lasts}. {summary(_added(call, found.names))}")

    def _read(self, call: ToolContext) -> Proposal:
        """The file as it is now, or what keeps it from being used."""
        path = Path(str(call.args["file_path"]))
        places = [*map(os.path.realpath, call.roots), os.path.realpath(self._proposals.folder())]
        if path.suffix != ".py" or not any(path.is_relative_to(place) for place in places):
            return Proposal(path, fault=WITHIN)
        try:
            with path.open(encoding="utf-8") as file:
                text = file.read(LARGEST + 1)
        except (OSError, ValueError) as error:
            return Proposal(path, fault=f"{path} cannot be read: {error}")
        if len(text) > LARGEST:
            return Proposal(path, fault=f"nobody reads more than {LARGEST:,} characters")
        wrong = fault_of(text, path.stem, call.agent.hooks.names) or self._proposals.refusal(
            call.session, path
        )
        return Proposal(path, text, wrong)


def _added(call: ToolContext, names: Collection[str]) -> dict[str, list[str]]:
    """What extensions have added to an agent, by its sort."""
    agent = call.agent
    owners = [owner for owner in agent.hooks.owners if owner.name in names]
    hooks = [hook.event or hook.asked for owner in owners for hook in agent.hooks.of(owner)]
    every = {"hooks": hooks} | {
        f"{each.noun}s": [name for name, (_, owner) in each.owned.items() if owner in owners]
        for each in agent.catalogs
    }
    return {sort: [*dict.fromkeys(added)] for sort, added in every.items() if added}
