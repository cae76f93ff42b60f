"""An agent's memory: a folder of its own that outlasts its work, and whose beginning it is told.

It lies where Claude Code has it, and both go on with the same files.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from crow import Allow, Deny, hook
from crow.extensions.subagents.definition import Definition
from crow.project import project_of

if TYPE_CHECKING:
    from crow import ToolContext

FOLDERS = {"user": "agent-memory", "project": "agent-memory", "local": "agent-memory-local"}
INDEX = "MEMORY.md"
LINES, BYTES = 200, 25_000
"""How much of the index an agent is told."""
TOOLS = frozenset({"Read", "Write", "Edit"})
"""What it needs for its files."""
WHOSE = {
    "user": "It is the same in every project: what holds for this one alone does not belong there.",
    "project": "It is shared with everybody who works on this project.",
    "local": "It is about this project, and stays on this machine.",
}
TOLD = """\
# Memory

You have a folder of your own that outlasts this task: {folder}
{whose}
Before you are done, write down what you will want to know the next time (what is where, what \
works, what went wrong, what was asked for), and correct what has turned out wrong. Of it you are \
told the first {lines} lines of {index}: keep these short, and put the rest into other files \
that they name.

## {index}

{text}\
"""


def remembering(definition: Definition, cwd: str) -> tuple[Definition, Memory | None]:
    """An agent that is told its memory and has the tools for it, and who looks after that."""
    if not definition.memory:
        return definition, None
    memory = Memory(definition, cwd)
    prompt = f"{definition.prompt}\n\n{memory.prompt}"
    lent = TOOLS if definition.tools is not None else frozenset[str]()
    return replace(definition, prompt=prompt, lent=lent), memory


class Memory:
    """Lets an agent keep its memory without a question.

    Tools that it has for that alone are for nothing else.
    """

    name = "memory"

    def __init__(self, definition: Definition, cwd: str) -> None:
        self.definition = definition
        self.base = Path.home() if definition.memory == "user" else project_of(cwd)
        name = definition.name.replace(":", "-").replace("/", "-").replace("\\", "-")
        self.folder = self.base / ".claude" / FOLDERS[definition.memory] / name.lstrip(".")

    @property
    def prompt(self) -> str:
        """What stands in the agent's prompt."""
        whose = WHOSE[self.definition.memory]
        text = self._index() or "(nothing yet)"
        return TOLD.format(folder=self.folder, whose=whose, index=INDEX, lines=LINES, text=text)

    def _index(self) -> str:
        """The beginning of the index; nothing where there is none, or where it leads elsewhere."""
        path = self.folder / INDEX
        if not self.holds(str(path)):
            return ""
        try:
            with path.open("rb") as file:
                text = file.read(BYTES + 1)
        except OSError:
            return ""
        lines = text[:BYTES].decode("utf-8", "replace").splitlines()
        is_cut = len(text) > BYTES or len(lines) > LINES
        more = ["(there is more in the file: shorten it)"] if is_cut else []
        return "\n".join([*lines[:LINES], *more])

    def holds(self, path: str) -> bool:
        """True for a file of the folder, wherever links may lead."""
        folder = Path(os.path.realpath(self.folder))
        return folder.is_relative_to(os.path.realpath(self.base)) and (
            folder in Path(os.path.realpath(path)).parents
        )

    @hook("before_tool", tools=TOOLS, judge=True)
    def judge(self, ctx: ToolContext) -> Allow | Deny | None:
        """Permit what happens in the folder; elsewhere only what the agent may do anyway."""
        path = str(Path(ctx.cwd, str(ctx.args.get("file_path", ""))))
        if self.holds(path):
            return Allow("it is the agent's own memory")
        if replace(self.definition, lent=frozenset[str]()).may_have(ctx.call.name):
            return None
        return Deny(f"{ctx.call.name} is for the agent's memory alone: {self.folder}")
