"""The tool by which the model uses a skill; its name and arguments are Claude Code's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from crow import CrowError, ToolResult
from crow.extensions.skills.index import SkillIndex
from crow.extensions.skills.skill import Skill

if TYPE_CHECKING:
    from crow import Context, ToolContext, ToolEnvironment
    from crow.tools import ToolKind

DESCRIPTION = (
    "Load the instructions of one of the skills that the system prompt lists. Do so as soon as the "
    "task is one that a skill is for, before you begin with it, and then do what it says."
)
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "skill": {"type": "string", "description": "The skill's name"},
        "args": {"type": "string", "description": "What the skill is to work on, if it takes that"},
    },
    "required": ["skill"],
    "additionalProperties": False,
}


class SkillTool:
    """Gives the text of a skill; ``load`` makes it and remembers that it was used."""

    name = "Skill"
    description = DESCRIPTION
    parameters = PARAMETERS
    kind: ToolKind = "other"

    def __init__(
        self,
        index: SkillIndex,
        load: Callable[[Context, Skill, str], Awaitable[str]],
    ) -> None:
        self._index = index
        self._load = load

    def title(self, args: dict[str, Any]) -> str:
        """The skill's name."""
        return f"Skill {self._whole(str(args['skill']))}"

    def prepare(self, args: dict[str, Any], cwd: str) -> dict[str, Any]:
        """Name the skill by its whole name: rules may speak of it."""
        return {**args, "skill": self._whole(str(args["skill"]))}

    def _whole(self, written: str) -> str:
        name = written.strip().removeprefix("/")
        found = self._index.meant(name)
        return found[0].name if len(found) == 1 else name

    def _chosen(self, name: str) -> Skill | ToolResult:
        """The skill that the model means and may use, or why there is none."""
        found = self._index.meant(name)
        if len(found) != 1:
            return ToolResult.failure(_unknown(name, found, self._index.skills))
        if not found[0].for_model:
            return ToolResult.failure(f"only the user can start {name}, with /{name}")
        return found[0]

    async def preview(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult | None:
        """Nothing but why it cannot be used."""
        chosen = self._chosen(str(args["skill"]))
        return chosen if isinstance(chosen, ToolResult) else None

    async def run(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult:
        """Read the skill. A name that there is not, or a file that is gone, is an error."""
        context, name = cast("ToolContext", ctx), str(args["skill"])
        skill = self._chosen(name)
        if isinstance(skill, ToolResult):
            return skill
        try:
            text = await self._load(context, skill, str(args.get("args") or ""))
        except (CrowError, OSError) as error:
            return ToolResult.failure(f"the skill {name} cannot be read: {error}")
        return ToolResult(text, data={"success": True, "commandName": skill.name})


def _unknown(name: str, found: Sequence[Skill], known: Iterable[str]) -> str:
    """Why a name does not say which skill is meant."""
    if found:
        names = ", ".join(skill.name for skill in found)
        return f"there are several skills {name!r}: {names}"
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known)}"
    return f"there is no skill {name!r}; {hint}"
