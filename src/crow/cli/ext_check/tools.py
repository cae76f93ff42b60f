"""The tools of an extension: what a model is told of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, cast

from crow.annotations.docstring import parameter_notes
from crow.cli.ext_check.finding import Finding
from crow.core.agent import Agent
from crow.core.hooks.hook import place_of
from crow.tools import FunctionTool


def undescribed(agent: Agent, used: Collection[str]) -> Iterator[Finding]:
    """Tools that these extensions add and of which a model is not told what they are for."""
    for tool, owner in agent.scope.tools.owned.values():
        if isinstance(tool, FunctionTool) and getattr(owner, "name", "") in used:
            yield from _missing(cast("FunctionTool[..., Any]", tool))


def _missing(tool: FunctionTool[..., Any]) -> Iterator[Finding]:
    path, _, line = place_of(tool.function).rpartition(":")
    if tool.description == tool.name:
        what = f"a model is told nothing of the tool {tool.name} but its name"
        yield Finding(what, "write a docstring", path, int(line or 0))
    for name in (
        parameter_notes(tool.function.__doc__).keys() - tool.function.__annotations__.keys()
    ):
        what = f"the docstring of the tool {tool.name} describes {name!r}, which is no parameter"
        yield Finding(what, "call it as the function does", path, int(line or 0))
