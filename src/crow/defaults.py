"""The defaults of an ``Agent()``: a model, the built-in tools, installed extensions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from crow.core.agent import Agent
from crow.core.defaults import ChatClient, Defaults
from crow.core.errors import ModelError
from crow.core.extensions import Found
from crow.core.hooks.registry import HookRegistry
from crow.core.ports.llm import LLM
from crow.core.ports.tool import Tool
from crow.entry_points import events


class Batteries(Defaults):
    """The model that settings and environment name, and the built-in tools."""

    def llm(self, given: ChatClient | str | None, model: str | None) -> LLM:
        """The model of a client or of this name, from the environment where none is named."""
        if given is not None and not isinstance(given, str):
            return of_client(given, model)
        from crow.llm import Routed, from_environment

        return Routed(lambda other: from_environment(other or given or model))

    def tools(self) -> Iterable[Tool]:
        """The tools that a coding agent is born with."""
        from crow.tools import builtin

        return builtin()

    def keys(self) -> Iterable[str]:
        """The variables of every provider that is known."""
        from crow.llm.presets import KEY_NAMES

        return KEY_NAMES

    def hint(self, lacking: Literal["store", "sections"]) -> str:
        """The extension that does it."""
        used = {"store": "PersistenceHook", "sections": "SystemPromptHook"}[lacking]
        return f"use an extension such as {used}"

    def discover(
        self,
        agent: Agent,
        options: Mapping[str, Mapping[str, Any]],
        disabled: frozenset[str],
        trusted: frozenset[str],
    ) -> Iterable[Found]:
        """Those that have an entry point."""
        from crow.entry_points import discover

        return discover(agent, options, disabled, trusted)


def of_client(client: ChatClient, model: str | None) -> LLM:
    """The model behind a client. Raises `ModelError` where it is no client or names no model."""
    completions = getattr(getattr(client, "chat", None), "completions", None)
    if not callable(getattr(completions, "create", None)):
        what = f"{client!r} is no model: it has neither stream() nor chat.completions.create()"
        raise ModelError(what, kind="unconfigured")
    name = model or os.environ.get("CROW_MODEL")
    if not name:
        what = f"which model should {type(client).__name__} ask for? Agent(client, model='gpt-5')"
        raise ModelError(f"{what}, or CROW_MODEL", kind="unconfigured")
    from crow.llm import ClientModel

    return ClientModel(client, name)


def install() -> None:
    """Give every agent these defaults."""
    Agent.defaults = Batteries()
    HookRegistry.announced = staticmethod(events)
