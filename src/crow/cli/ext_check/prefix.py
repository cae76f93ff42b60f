"""Changes of the beginning that requests have in common, so that no provider's cache holds."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from crow.cli.ext_check.finding import Finding
from crow.cli.ext_check.source_lines import NOWHERE, Place, where_called, where_defined
from crow.core.trace import Record

BEHIND = "put what changes behind the conversation: return it from before_run"
CONSTANT = "let their names and descriptions be constant"
EARLY = "add them in init_agent"
Asked = tuple[list[Any], list[Any]]
"""The messages and the tools of a request."""
ADDING = ("add_tool", "use_tool", "set_tools")


class Played(Protocol):
    """A session in which the extension took part, as far as it is known."""

    asked: list[Asked]
    told: list[tuple[Record, Place]]
    sections: dict[str, str]
    files: tuple[str, ...]


def prefix(first: Played, second: Played) -> Iterator[Finding]:
    """Requests that do not begin as others do, in one session or two."""
    if first.asked and second.asked:
        (messages, tools), (others, also) = first.asked[0], second.asked[0]
        if messages[:1] != others[:1]:
            what = f"two sessions have different instructions: {differing(messages, others)}"
            yield Finding(what, BEHIND, *written(first, second))
        if tools != also:
            yield Finding("two sessions have different tools", CONSTANT, *added(first, tools, also))
    for (messages, tools), (later, also) in itertools.pairwise(first.asked):
        if later[: len(messages)] != messages:
            yield Finding("a request does not begin as the one before", BEHIND, *changed(first))
            return
        if tools != also:
            yield Finding("the tools change in a session", EARLY, *added(first, tools, also))
            return


def differing(first: Sequence[Any], second: Sequence[Any]) -> str:
    """The first line that differs."""
    pairs = zip(str(first[0]).split("\\n"), str(second[0]).split("\\n"), strict=False)
    return next((f"{a[:80]!r} and {b[:80]!r}" for a, b in pairs if a != b), "their lengths")


def written(first: Played, second: Played) -> Place:
    """Where a section is made that has another text in another session, else what changes it."""
    for name, text in first.sections.items():
        if second.sections.get(name) != text:
            place = where_called(first.files, ["PromptSection", "add_section"], name)
            return place if place != NOWHERE else where_called(first.files, ["add_section"])
    return changed(first)


def changed(played: Played) -> Place:
    """The first hook that changed what the model is sent."""
    for record, place in played.told:
        if record.changed and "request" in record.event:
            return place
    asks = where_called(played.files, ["add_section", "PromptSection"])
    return asks if asks != NOWHERE else next((place for _, place in played.told), NOWHERE)


def added(played: Played, tools: Sequence[Any], others: Sequence[Any]) -> Place:
    """Where a tool is added, else defined, that only one of two requests has, or has otherwise."""
    for name in names(
        tool for tool in (*others, *tools) if tool not in tools or tool not in others
    ):
        for place in (
            where_called(played.files, ADDING, name),
            where_called(played.files, ADDING),
            where_defined(played.files, name),
        ):
            if place != NOWHERE:
                return place
    return changed(played)


def names(tools: Iterable[Any]) -> Iterator[str]:
    """The names of tools as a model is sent them."""
    for tool in tools:
        yield str(tool["function"]["name"])
