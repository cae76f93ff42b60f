"""Named agents, as files define them: front matter, and the prompt as the body."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast

from crow.core.errors import CrowError
from crow.frontmatter import parse

LONGEST = 100_000
GENERAL_PURPOSE = "general-purpose"
_COMMAS = re.compile(r",(?![^(]*\))")


@dataclass(frozen=True, slots=True)
class Definition:
    """An agent that can be called by its name.

    ``description`` tells the model when to call it. ``tools`` are the ones it may have, None for
    all; ``without`` are taken from these (``*`` stands for anything: ``mcp__git__*``). ``model``
    is empty where it has that of its caller. ``hooks`` are those of its front matter, as they stand
    there: this extension runs none of them.
    """

    name: str
    description: str
    prompt: str
    tools: frozenset[str] | None = None
    without: frozenset[str] = frozenset()
    model: str = ""
    source: str = "crow"
    hooks: object = field(default=None, hash=False)

    def may_have(self, tool: str) -> bool:
        """True where the agent has this tool if its caller has it."""
        given = self.tools is None or any(fnmatchcase(tool, name) for name in self.tools)
        return given and not any(fnmatchcase(tool, name) for name in self.without)


BUILT_IN = Definition(
    GENERAL_PURPOSE,
    "For research and for work of several steps of which only the result is wanted here. It has "
    "the same tools as you.",
    """\
You work on one task for another agent, which sees nothing of your work but your last message.

- Do all of the task and no more. Nobody answers questions: decide, and say what you decided.
- Look before you act: search and read instead of guessing.
- A call that was denied was denied for a reason: find another approach, or say that it is in \
the way.
- Your last message is the result: say what you found or did, with absolute paths and the lines \
that matter, and what you could not do; nothing else.\
""",
)


@dataclass(slots=True)
class Definitions:
    """The agents of several folders by name; ``problems`` are lines for a person."""

    agents: dict[str, Definition]
    problems: list[str]

    @classmethod
    def of(cls, folders: Iterable[Path]) -> Definitions:
        """Every agent that the folders define; of one name the first one counts."""
        found = cls({}, [])
        for folder in folders:
            for path in sorted(folder.rglob("*.md")):
                found.add(path)
        found.agents.setdefault(GENERAL_PURPOSE, BUILT_IN)
        return found

    def add(self, path: Path) -> None:
        """Add the agent of a file, or the line that says why there is none."""
        try:
            definition = read(path)
        except (CrowError, OSError, ValueError, RecursionError) as error:
            reason = getattr(error, "strerror", None) or error
            self.problems.append(f"{path} defines no agent: {' '.join(str(reason).split())}")
            return
        self.agents.setdefault(definition.name, definition)
        self.problems += [f"{path}: {line}" for line in _oddities(definition)]


def read(path: Path) -> Definition:
    """The agent that a file defines. Raises ``ValueError``, ``OSError`` or `FrontMatterError`."""
    with path.open(encoding="utf-8-sig") as file:
        text = file.read(LONGEST + 1)
    if len(text) > LONGEST:
        raise ValueError(f"it has more than {LONGEST} characters")
    front, prompt = parse(text)
    if not front:
        raise ValueError("it has no front matter (between two lines of ---) with a description")
    description = _text(front, "description")
    if not description or not prompt.strip():
        raise ValueError("it has no description" if not description else "it has no prompt")
    tools = _names(front, "tools")
    return Definition(
        _text(front, "name") or path.stem,
        description,
        prompt.strip(),
        None if tools is None or "*" in tools else tools,
        _names(front, "disallowedTools") or frozenset(),
        _text(front, "model"),
        str(path),
        front.get("hooks"),
    )


def _text(front: Mapping[str, Any], key: str) -> str:
    value = front.get(key)
    if value is None or isinstance(value, str):
        return (value or "").strip()
    raise ValueError(f"{key!r} must be text")


def _names(front: Mapping[str, Any], key: str) -> frozenset[str] | None:
    """Tool names as a list, or as text with commas; None where there are none given."""
    value = front.get(key)
    if value is None:
        return None
    if isinstance(value, str) and value.startswith("["):
        value = value.strip("[]")  # a list, in front matter that is no YAML elsewhere
    listed: object = _COMMAS.split(value) if isinstance(value, str) else value
    parts = cast("list[object]", listed) if isinstance(listed, list) else [None]
    names = [part.strip(" \t\"'") for part in parts if isinstance(part, str)]
    if len(names) < len(parts):
        raise ValueError(f"{key!r} must be a list of tool names")
    return frozenset("Agent" if name == "Task" else name for name in names if name)


def _oddities(definition: Definition) -> Iterator[str]:
    for name in sorted(definition.tools or ()):
        if "(" in name:
            yield f"the tool {name!r} is not given: only whole tools can be, without brackets"
