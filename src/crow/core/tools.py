"""A tool call, and what came of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import field, replace
from typing import Any, Literal, Self, cast

from crow.core.messages import Content, ToolCall, text_of
from crow.core.support.frozen import frozen

Outcome = Literal["ok", "error", "denied", "answered", "cancelled"]
"""How a tool call ended; ``answered`` is for a hook that answered in the tool's place."""
ToolKind = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
"""What a tool does, for whoever shows its calls and for rules."""


class ToolName(str):
    """A tool's name, with what else rules and matchers may call that tool.

    Both are pairs: a name of all tools that it comes with, and one of its own. ``exact`` ones mean
    this tool and nothing else. ``loose`` ones could mean another tool as well: what they are
    written in may refuse or ask, and never allow.
    """

    __slots__ = ("exact", "loose")
    exact: frozenset[tuple[str, str]]
    loose: frozenset[tuple[str, str]]

    def __new__(
        cls,
        name: str,
        exact: Iterable[tuple[str, str]] = (),
        loose: Iterable[tuple[str, str]] = (),
    ) -> Self:
        self = super().__new__(cls, name)
        self.exact, self.loose = frozenset(exact), frozenset(loose)
        return self

    @property
    def others(self) -> frozenset[str]:
        """Every other name of this tool alone, exact or loose."""
        return frozenset(name for _, name in self.exact | self.loose)


@frozen
class Call:
    """One tool call of the model's. ``id`` is unique within a session.

    ``args`` is what the model asked for; ``raw`` the JSON text it sent. ``fault`` says why the
    call cannot run (arguments that are no JSON object, a reply that was cut off); such a call is
    answered with the fault and never executed. ``extra_content`` is what the endpoint sent with
    the call and wants back.
    """

    id: str
    name: str
    args: dict[str, Any] = field(default_factory=dict[str, Any])
    raw: str = ""
    fault: str | None = None
    extra_content: Any = field(default=None, repr=False)

    def called(self, tool: object) -> str:
        """The name of the call, as the tool that it means has it."""
        name: str = getattr(tool, "name", self.name)
        return name if name == self.name else self.name

    @property
    def input(self) -> dict[str, Any]:
        """The arguments, by the name that the Anthropic API gives them."""
        return self.args

    def as_message_part(self) -> ToolCall:
        """The call as it stands in an assistant message; a faulty one with empty arguments.

        The text that the model sent counts as long as it says what the arguments are: a hook may
        have changed these.
        """
        arguments = "{}" if self.fault else self._written()
        part: ToolCall = {
            "id": self.id,
            "type": "function",
            "function": {"name": self.name, "arguments": arguments},
        }
        if self.extra_content is not None:
            part["extra_content"] = self.extra_content
        return part

    def _written(self) -> str:
        try:
            if self.raw and json.loads(self.raw) == self.args:
                return self.raw
        except ValueError:
            pass
        return json.dumps(self.args, ensure_ascii=False)


@frozen
class Location:
    """A place in a file; ``path`` is absolute, ``line`` counts from 1."""

    path: str
    line: int | None = None


@frozen
class Diff:
    """A file before and after; ``old`` is None where the file is new.

    Where ``line`` is given, both texts are only a part of the file, which begins at that line.
    """

    path: str
    old: str | None
    new: str
    line: int | None = None


LABEL = r"(?s)<(?P<tag>[a-z]+-data)(?: [^<>\n]*)?>\n?(?P<inner>.*?)\n?</(?P=tag)>"


@frozen
class ToolResult:
    """The result of a tool call: ``content`` for the model, the rest for people and hooks.

    ``data`` is the structured output that hooks see as ``tool_response`` (JSON).
    ``terminal`` is the id of a client's terminal that shows the command.
    """

    content: Content
    error: bool = False
    data: Any = None
    diffs: tuple[Diff, ...] = ()
    locations: tuple[Location, ...] = ()
    terminal: str | None = None

    @property
    def text(self) -> str:
        """The text for the model."""
        return text_of(self.content)

    @property
    def shown(self) -> str:
        """The text for people: without a label that tells the model whose words these are.

        Such a label is a tag that ends in ``-data``, around the whole: ``<mcp-data server="x">``.
        """
        labelled = re.fullmatch(LABEL, self.text)
        return labelled["inner"] if labelled else self.text

    @classmethod
    def of(cls, value: object) -> ToolResult:
        """What a tool or a hook returned, as a result: text as it is, other values as JSON."""
        if isinstance(value, ToolResult):
            return value
        if isinstance(value, str):
            return cls(value)
        return cls(json.dumps(value, ensure_ascii=False, default=str), data=value)

    @classmethod
    def failure(cls, text: str) -> ToolResult:
        """An error that the model is told of."""
        return cls(text, error=True)

    def updated(self, output: Any) -> ToolResult:
        """This result with another output in the place of its own."""
        return replace(self, content=_shown(output), data=output)

    def resembles(self, output: Any) -> bool:
        """True where an output has the shape of this result's ``data``."""
        return _same_shape(self.data, output)


def _same_shape(old: object, new: object) -> bool:
    """True where everything that stood in the old output has its type in the new one."""
    if isinstance(old, dict):
        if not isinstance(new, dict):
            return False
        known, given = cast("dict[str, object]", old), cast("dict[str, object]", new)
        return all(
            name in given and _same_shape(value, given[name]) for name, value in known.items()
        )
    if old is None or new is None:
        return True
    return isinstance(new, list) if isinstance(old, list) else type(new) is type(old)


def _shown(output: Any) -> str:
    """A structured output as the model reads it."""
    match output:
        case str():
            return output
        case {"stdout": str(out), "stderr": str(err)}:
            return "\n".join(text for text in (out, err) if text) or "(no output)"
        case {"file": {"content": str(text)}}:
            return text
        case {"content": [*blocks]} | [*blocks] if blocks and all(map(_is_text, blocks)):
            return "\n".join(block["text"] for block in blocks)
        case _:
            return json.dumps(output, ensure_ascii=False, default=str)


def _is_text(block: Any) -> bool:
    return isinstance(block, dict) and isinstance(cast("dict[str, Any]", block).get("text"), str)
