"""Control requests: what a program asks of a session, and a session of the program's hooks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from crow.core.agent import Agent
from crow.core.errors import ModelError
from crow.core.session import Session
from crow.core.support.validation import first_implementing, implementing
from crow.keys import OUTPUT_STYLE
from crow.ports.faces import AgentDefiner, StyleProvider
from crow.ports.models import names_of
from crow.stream_json.init import servers
from crow.stream_json.lines import ControlError, Lines, Message, as_object
from crow.stream_json.prompts import rewind

Callback = Callable[[Message, str | None], Awaitable[Message]]


class Control:
    """Answers the requests of a program about a session."""

    def __init__(self, agent: Agent, session: Session) -> None:
        self.agent = agent
        self.session = session

    async def answer(self, request: Message) -> Message:
        """The answer to a request. Raises `ControlError`."""
        subtype = str(request.get("subtype"))
        ask = ASKED.get(subtype)
        if ask is None:
            raise ControlError(f"the control request {subtype!r} is not supported")
        return await ask(self, request)

    async def initialize(self, request: Message) -> Message:
        """Take the program's sub-agents, and say what can be chosen here."""
        agents = self._define(request.get("agents"))
        commands = self.agent.commands_of(self.session).values()
        try:
            names = [*names_of(self.agent.llm)] or [self.agent.llm.model]
        except ModelError:
            names = []
        return {
            "commands": [
                {"name": each.name, "description": each.description, "argumentHint": each.hint}
                for each in commands
            ],
            "agents": agents,
            "models": [{"value": name, "displayName": name, "description": ""} for name in names],
            "account": {},
            "output_style": OUTPUT_STYLE.get(self.session) or "default",
            "available_output_styles": self._styles(),
        }

    def _styles(self) -> list[str]:
        """The ways in which the agent can talk."""
        known = self.agent.extensions_of(self.session).values()
        return next(([*each.styles] for each in implementing(known, StyleProvider)), ["default"])

    def _define(self, agents: Any) -> list[Message]:
        """Define sub-agents, where somebody has such; those that are defined so by now."""
        known = self.agent.extensions_of(self.session).values()
        maker = first_implementing(known, AgentDefiner)
        if agents and maker is None:
            raise ControlError("the extension subagents is switched off here")
        made = maker.define_agents(agents or {}, "the program") if maker is not None else ()
        return [{"name": each.name, "description": each.description} for each in made]

    async def interrupt(self, request: Message) -> Message:
        """Cancel what runs."""
        del request
        self.agent.cancel(self.session)
        return {"still_queued": []}

    async def set_mode(self, request: Message) -> Message:
        """Choose a mode."""
        mode, known = str(request.get("mode")), self.agent.modes_of(self.session)
        if known and mode not in known:
            raise ControlError(f"there is no mode {mode!r} ({', '.join(known)})")
        await self._configure(mode=mode)
        return {"mode": mode}

    async def set_model(self, request: Message) -> Message:
        """Choose a model; None is the agent's own."""
        model = request.get("model")
        await self._configure(model=None if model in (None, "default") else str(model))
        return {"model": model}

    async def _configure(self, **changes: Any) -> None:
        refused = await self.agent.configure(self.session, **changes)
        if refused:
            raise ControlError(refused)

    async def mcp_status(self, request: Message) -> Message:
        """The servers that lend tools."""
        del request
        return {"mcpServers": servers(self.agent, self.session)}

    async def rewind_files(self, request: Message) -> Message:
        """Bring files back."""
        return await rewind(self.agent, self.session, request)

    async def context_usage(self, request: Message) -> Message:
        """How full the model's window is."""
        del request
        try:
            window, model = self.agent.context_window(self.session), self.agent.llm.model
        except ModelError:
            window, model = None, ""
        tokens = self.session.tokens(window)["total_tokens"]
        return {
            "categories": [{"name": "Messages", "tokens": tokens, "kind": "used"}],
            "totalTokens": tokens,
            "maxTokens": window or 0,
            "percentage": round(100 * tokens / window) if window else 0,
            "model": self.session.model or model,
        }


ASKED: dict[str, Callable[[Control, Message], Awaitable[Message]]] = {
    "initialize": Control.initialize,
    "interrupt": Control.interrupt,
    "set_permission_mode": Control.set_mode,
    "set_model": Control.set_model,
    "mcp_status": Control.mcp_status,
    "get_context_usage": Control.context_usage,
    "rewind_files": Control.rewind_files,
}


def hooks_table(lines: Lines, wanted: Any) -> dict[str, Any]:
    """The hooks that a program has, as a table of settings: Claude Code's events, by name."""
    table = as_object(wanted)
    return {
        event: [_group(lines, as_object(group)) for group in groups or ()]
        for event, groups in table.items()
    }


def deciding(decide: Callback) -> dict[str, Any]:
    """The hook that is asked whether a call may run, where nobody else has said so."""
    handler: Message = {"type": "callback", "callback": decide, "name": "can_use_tool"}
    return {"PermissionRequest": [{"hooks": [{**handler, "timeout": FOREVER}]}]}


FOREVER = 86_400.0
"""Seconds that somebody has who is asked for permission."""


def _group(lines: Lines, group: Message) -> Message:
    timeout = {"timeout": group["timeout"]} if group.get("timeout") else {}
    handlers = [
        {"type": "callback", "callback": hook_callback(lines, name), "name": name, **timeout}
        for name in group.get("hookCallbackIds", [])
    ]
    matcher = {"matcher": group["matcher"]} if group.get("matcher") else {}
    return {**matcher, "hooks": handlers}


def hook_callback(lines: Lines, name: str) -> Callback:
    """What has a hook of the program answer."""

    async def call(payload: Message, call_id: str | None) -> Message:
        fields = {"callback_id": name, "input": payload, "tool_use_id": call_id}
        return await lines.ask("hook_callback", **fields)

    return call
