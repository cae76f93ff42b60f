"""What ``Agent()`` starts with where it is given no model and no tools."""

from __future__ import annotations

from collections.abc import Iterable

from crow.core.agent import Agent, Defaults
from crow.core.ports import LLM, Tool


class Batteries(Defaults):
    """The model that settings and environment name, and the built-in tools."""

    def llm(self, name: str | None) -> LLM:
        """The model of this name, from the environment where none is named."""
        from crow.llm import Routed, from_environment

        return Routed(lambda other: from_environment(other or name))

    def tools(self) -> Iterable[Tool]:
        """The tools that a coding agent is born with."""
        from crow.tools import builtin

        return builtin()


def install() -> None:
    """Give every agent these defaults."""
    Agent.defaults = Batteries()
