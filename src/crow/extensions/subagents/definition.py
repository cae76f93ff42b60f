"""Named agents, as files define them: front matter, and the prompt as the body."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from crow import CrowError
from crow.dataclasses import frozen, mutable
from crow.project import reason
from crow.tools import ToolName

if TYPE_CHECKING:
    from crow.project import Brought, FrontMatter, Plugin

GENERAL_PURPOSE = "general-purpose"
TOOLS = ("tools", "allowed-tools", "allowed_tools", "allowedTools")
REFUSED = ("mcpServers", "permissionMode", "permission-mode")
"""What the agent of a plugin may not say: nobody has agreed to it. Its hooks do not run either."""
SCOPES = ("user", "project", "local")
"""Whose an agent's memory is."""
WITHOUT = ("disallowedTools", "disallowed-tools", "disallowed_tools")


@frozen
class Definition:
    """An agent that can be called by its name.

    ``description`` tells the model when to call it. ``tools`` are the ones it may have, None for
    all; ``without`` are taken from these (``*`` stands for anything: ``mcp__git__*``). ``model``
    is empty where it has that of its caller. ``front_matter`` is all that its file says; hooks see
    it when the agent begins. ``of_plugin`` is true for one that its user did not write. ``lent``
    are tools that it has for its memory alone.
    """

    name: str
    description: str
    prompt: str
    tools: frozenset[str] | None = None
    without: frozenset[str] = frozenset()
    model: str = ""
    source: str = "crow"
    front_matter: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    of_plugin: bool = False
    lent: frozenset[str] = frozenset()

    @property
    def isolated(self) -> bool:
        """True where the agent works in a working tree of its own."""
        return self.front_matter.get("isolation") == "worktree"

    @property
    def turns(self) -> int | None:
        """How many requests it may make, None for as many as its caller."""
        value = str(self.front_matter.get("maxTurns") or "")
        return int(value) if value.isdecimal() and int(value) else None

    @property
    def mode(self) -> str:
        """The permission mode that it wants; empty for its caller's."""
        return str(self.front_matter.get("permissionMode") or "")

    @property
    def memory(self) -> str:
        """Whose memory it has: one of `SCOPES`, empty for none."""
        scope = str(self.front_matter.get("memory") or "")
        return scope if scope in SCOPES else ""

    @property
    def goes_on(self) -> bool:
        """True where its caller does not wait for it."""
        from crow.project import FrontMatter

        return FrontMatter(dict(self.front_matter), "").flag("background")

    @property
    def first_prompt(self) -> str:
        """What a session that runs as this agent begins with."""
        return str(self.front_matter.get("initialPrompt") or "").strip()

    @property
    def servers(self) -> dict[str, Any]:
        """The MCP servers that its file describes, by name."""
        return dict(_described(self.front_matter.get("mcpServers")))

    def may_have(self, tool: str) -> bool:
        """True where the agent has this tool if its caller has it."""
        exact = tool.exact if isinstance(tool, ToolName) else ()
        loose = tool.loose if isinstance(tool, ToolName) else ()
        given = self.tools is None or tool in self.lent or _are_meant(self.tools, tool, exact)
        return given and not _are_meant(self.without, tool, (*exact, *loose))


def _are_meant(names: Iterable[str], tool: str, others: Iterable[tuple[str, str]]) -> bool:
    known = {tool, *(each for pair in others for each in pair)}
    return any(fnmatchcase(each, name) for name in names for each in known)


BUILT_IN = Definition(
    GENERAL_PURPOSE,
    "research, or work of which only the result matters",
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


@mutable
class Definitions:
    """The agents of several folders by name; ``problems`` are lines for a person."""

    agents: dict[str, Definition]
    problems: list[str]

    @classmethod
    def of(cls, folders: Iterable[Path], plugins: Iterable[Plugin] = ()) -> Definitions:
        """Every agent that folders and plugins define; of one name the first one counts."""
        found = cls({}, [])
        for folder in filter(Path.is_dir, folders):
            for path in sorted(folder.rglob("*.md")):
                found.add(path)
        for plugin in plugins:
            for part in plugin.parts.get("agents", ()):
                for path in sorted(part.rglob("*.md")) if part.is_dir() else [part]:
                    inside = path.relative_to(part).parts[:-1]
                    found.add(path, plugin, inside)
        found.agents.setdefault(GENERAL_PURPOSE, BUILT_IN)
        return found

    def add(self, path: Path, plugin: Plugin | None = None, inside: tuple[str, ...] = ()) -> None:
        """Add the agent of a file, or the line that says why there is none.

        ``inside`` are the folders of its plugin that it is in.
        """
        try:
            definition = read(path, plugin, inside)
        except (CrowError, OSError, ValueError, RecursionError) as error:
            self.problems.append(f"{path} defines no agent: {reason(error)}")
            return
        if definition is None:
            return
        self.agents.setdefault(definition.name, definition)
        if plugin is None:  # nobody mends a plugin's
            self.problems += [f"{path}: {line}" for line in _oddities(definition)]

    def take(self, brought: Brought) -> None:
        """Add the agent that is brought along from elsewhere, where its name is not taken."""
        try:
            definition = defined(brought.name, brought.value, str(brought.path))
        except (ValueError, TypeError, AttributeError) as error:
            self.problems.append(f"{brought.path}: {brought.label}: {error}")
            return
        self.agents.setdefault(definition.name, definition)


def read(
    path: Path, plugin: Plugin | None = None, inside: tuple[str, ...] = ()
) -> Definition | None:
    """The agent that a file defines; None for a README, and a plugin's text that is none.

    Raises ``ValueError`` or ``OSError``.
    """
    from crow.project import FrontMatter

    front = FrontMatter.read(path)
    prompt = front.body.strip()
    if (
        not front.table
        and not front.fault
        and (plugin is not None or path.stem.casefold() == "readme")
    ):
        return None
    if not front.table:
        told = "it has no front matter (between two lines of ---) with a description"
        raise ValueError(front.fault or told)
    name = front.text("name").strip("[]") or path.stem
    called = plugin.called(*inside, name) if plugin else name
    if plugin is not None:
        kept = {key: front.table[key] for key in front.table if key not in REFUSED}
        front = front._replace(table=kept)
    from crow.project import fill_placeholders

    found = _defined(called, front, fill_placeholders(prompt, {}, plugin), str(path))
    return replace(found, of_plugin=plugin is not None)


def defined(name: str, table: Mapping[str, Any], source: str) -> Definition:
    """The agent that a program or a setting defines: front matter, and the prompt in it.

    Raises ``ValueError``.
    """
    from crow.project import FrontMatter

    front = FrontMatter({key: table[key] for key in table if key != "prompt"}, "")
    return _defined(name, front, str(table.get("prompt") or "").strip(), source)


def _defined(name: str, front: FrontMatter, prompt: str, source: str) -> Definition:
    description = front.text("description")
    if not description or not prompt:
        raise ValueError("it has no description" if not description else "it has no prompt")
    tools = _tools(front.names(*TOOLS))
    if tools is not None:
        tools |= {f"mcp__{each}__*" for each in _servers(front.table.get("mcpServers"))}
    return Definition(
        name,
        description,
        prompt,
        None if tools is None or "*" in tools else tools,
        _tools(front.names(*WITHOUT)) or frozenset(),
        front.text("model"),
        source,
        front.table,
    )


def _servers(given: object) -> Iterator[str]:
    """The servers that an agent names, and those that it describes."""
    for each in cast("list[object]", given) if isinstance(given, list) else ():
        if isinstance(each, str):
            yield each
    yield from dict(_described(cast(object, given)))


def _described(given: object) -> Iterator[tuple[str, Any]]:
    """The servers that its file describes, by name."""
    listed = cast("list[object]", given) if isinstance(given, list) else [given]
    for each in listed:
        if isinstance(each, dict):
            for name, table in cast("Mapping[object, Any]", each).items():
                yield str(name), table


def _tools(given: Iterable[str] | None) -> frozenset[str] | None:
    """Tools by the names that they have here; None where there are none given."""
    if given is None:
        return None
    return frozenset("Agent" if name == "Task" else name for name in given)


def _oddities(definition: Definition) -> Iterator[str]:
    for name in sorted(definition.tools or ()):
        if "(" in name:
            yield f"the tool {name!r} is not given: only whole tools can be, without brackets"
