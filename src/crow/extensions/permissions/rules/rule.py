"""Permission rules as they stand in settings: ``Tool`` or ``Tool(specifier)``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Literal

from crow.dataclasses import frozen
from crow.extensions.permissions.rules.command import CommandPattern
from crow.extensions.permissions.rules.domain import domain_expression
from crow.extensions.permissions.rules.pattern import PathPattern
from crow.extensions.permissions.settings import RuleText
from crow.tools import ToolName

Behaviour = Literal["allow", "ask", "deny"]

READERS = frozenset({"Read", "Glob", "Grep", "LS", "NotebookRead"})
EDITORS = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
PRIMARY = frozenset({"command", "file_path", "path", "notebook_path", "url"})
TOOLS = (
    *sorted(READERS | EDITORS),
    *("Bash", "WebFetch", "WebSearch", "Agent", "Skill", "TodoWrite", "AskUserQuestion"),
    *("ExitPlanMode", "TaskStop", "BashOutput", "TaskOutput"),
)
ALIASES = {"task": "Agent", "killshell": "TaskStop", "killbash": "TaskStop", "shell": "Bash"}
NAMES = {name.lower(): name for name in TOOLS} | ALIASES
SHAPE = re.compile(r"([^\s()]+)\s*(?:\((.*)\))?", re.DOTALL)
PARAMETER = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*):(.*)", re.DOTALL)
ALLOW_GLOB = re.compile(r"mcp__(?:(?!__)[^*?\[])+__.*", re.DOTALL)


def tool_name(name: str) -> str:
    """A tool's name as rules spell it."""
    return NAMES.get(name.lower(), name)


@frozen
class PermissionRule:
    """One rule, parsed. Which of the matchers it has depends on its tool."""

    text: str
    behaviour: Behaviour
    tool: str
    specifier: str | None
    source: str = "session"
    root: str | None = None
    tools: re.Pattern[str] | None = None
    command: CommandPattern | None = None
    path: PathPattern | None = None
    domain: re.Pattern[str] | None = None
    parameter: tuple[str, re.Pattern[str]] | None = None

    @property
    def bare(self) -> bool:
        """Whether it speaks of every use of its tool."""
        return self.specifier is None

    def names(self, tool: str) -> bool:
        """Whether the rule's tool name means this tool.

        What was made of a text alone may be several servers' tools: only a rule that allows nothing
        means all of them.
        """
        if isinstance(tool, ToolName):
            known = tool.exact if self.behaviour == "allow" else tool.exact | tool.loose
            return any(self._means(*pair) for pair in known)
        if self.tools is not None:
            return self.tools.fullmatch(tool) is not None
        if self.tool == tool:
            return True
        if self.tool.startswith("mcp__"):
            is_server = self.behaviour != "allow" or "__" not in self.tool[5:]
            return is_server and tool.startswith(self.tool + "__")
        return self.bare and (
            (self.tool == "Edit" and tool in EDITORS) or (self.tool == "Read" and tool in READERS)
        )

    def _means(self, server: str, tool: str) -> bool:
        if self.tools is not None:
            return self.tools.fullmatch(tool) is not None
        return self.tool in (server, tool)

    def has_parameter(self, args: Mapping[str, Any]) -> bool:
        """Whether it names one of the arguments by its value."""
        if self.parameter is None or self.parameter[0] not in args:
            return False
        value = args[self.parameter[0]]
        if isinstance(value, dict | list):
            return False
        shown = value if isinstance(value, str) else json.dumps(value, default=str)
        return self.parameter[1].fullmatch(shown) is not None


def parse_rule(written: RuleText | str, behaviour: Behaviour) -> PermissionRule:
    """Parse one rule. Raises ValueError that says what is wrong with it."""
    one = written if isinstance(written, RuleText) else RuleText(written)
    match = SHAPE.fullmatch(one.text.strip())
    if match is None:
        raise ValueError("it is neither Tool nor Tool(specifier)")
    name, specifier = tool_name(match[1]), match[2]
    if specifier is not None and (specifier := specifier.strip()) in {"", "*"}:
        specifier = _empty(specifier, name, behaviour)
    fields: dict[str, Any] = {"tools": _tools(name, behaviour)}
    if specifier is not None:
        fields |= _matchers(name, specifier, behaviour)
    return PermissionRule(
        one.text.strip(), behaviour, name, specifier, one.source, one.root, **fields
    )


def _empty(specifier: str, name: str, behaviour: Behaviour) -> str | None:
    if behaviour == "allow" and (not specifier or name in READERS | EDITORS):
        if not specifier:
            raise ValueError("its parentheses are empty")
        return specifier
    return None


def _tools(name: str, behaviour: Behaviour) -> re.Pattern[str] | None:
    if not re.search(r"[*?\[]", name):
        return None
    if behaviour == "allow" and not ALLOW_GLOB.fullmatch(name):
        raise ValueError("an allow rule may have a wildcard only after a literal mcp__server__")
    return wildcard(name)


def wildcard(text: str) -> re.Pattern[str]:
    """Text with ``*`` as a regular expression."""
    return re.compile(".*".join(re.escape(piece) for piece in text.split("*")), re.DOTALL)


def _matchers(name: str, specifier: str, behaviour: Behaviour) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    parameter = PARAMETER.fullmatch(specifier)
    primary = parameter is not None and parameter[1] in PRIMARY and name in TOOLS
    if parameter and behaviour != "allow" and not primary:
        fields["parameter"] = (parameter[1], wildcard(parameter[2].strip()))
    if name == "Bash":
        fields["command"] = CommandPattern.of(specifier)
    elif name in READERS or name in EDITORS:
        fields |= _path(name, specifier, behaviour)
    elif name == "WebFetch":
        fields |= _domain(specifier, has_parameter="parameter" in fields)
    elif name not in {"Agent", "Skill"} and "parameter" not in fields:
        near = get_close_matches(name, TOOLS, n=1)
        hint = f"; did you mean {near[0]}?" if near and name not in TOOLS else ""
        raise ValueError(f"{name} knows no such specifier{hint}")
    return fields


def _path(name: str, specifier: str, behaviour: Behaviour) -> dict[str, Any]:
    if behaviour == "allow" and name not in {"Read", "Edit"}:
        wanted = "Edit" if name in EDITORS else "Read"
        raise ValueError(f"path rules are written for {wanted}, not for {name}")
    if behaviour == "allow" and specifier.startswith("!"):
        raise ValueError("only deny and ask rules can be carved out of")
    return {"path": PathPattern.of(specifier, strict=behaviour == "allow")}


def _domain(specifier: str, *, has_parameter: bool) -> dict[str, Any]:
    if specifier.startswith("domain:"):
        return {"domain": domain_expression(specifier[7:]), "parameter": None}
    if has_parameter:
        return {}
    raise ValueError("WebFetch rules are written WebFetch(domain:example.com)")


def parse_rules(
    texts: Iterable[RuleText | str], behaviour: Behaviour, warnings: list[str]
) -> tuple[PermissionRule, ...]:
    """Parse rules; those that are malformed are named in ``warnings`` and left out."""
    rules: list[PermissionRule] = []
    for text in texts:
        try:
            rules.append(parse_rule(text, behaviour))
        except ValueError as error:
            one = text if isinstance(text, RuleText) else RuleText(text)
            where = f" in {one.source}" if "/" in one.source else ""
            warnings.append(f"{behaviour} rule {one.text!r}{where} is ignored: {error}")
    return tuple(rules)


def limits_commands(*lists: Iterable[PermissionRule]) -> bool:
    """True where any of these rules speaks of commands."""
    return any(rule.command is not None for rules in lists for rule in rules)
