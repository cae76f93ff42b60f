"""Holds what an agent sends against the protocol's schema, strictly: nothing may get lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from itertools import zip_longest
from typing import Any, cast

Message = dict[str, Any]

AGENT_METHOD = ("type", "agent")
RESPONSES = {
    "initialize": "InitializeResponse",
    "authenticate": "AuthenticateResponse",
    "logout": "LogoutResponse",
    "session/new": "NewSessionResponse",
    "session/load": "LoadSessionResponse",
    "session/resume": "ResumeSessionResponse",
    "session/fork": "ForkSessionResponse",
    "session/list": "ListSessionsResponse",
    "session/close": "CloseSessionResponse",
    "session/delete": "DeleteSessionResponse",
    "session/set_mode": "SetSessionModeResponse",
    "session/set_config_option": "SetSessionConfigOptionResponse",
    "session/prompt": "PromptResponse",
}
REQUESTS = {
    "session/update": "SessionNotification",
    "session/request_permission": "RequestPermissionRequest",
    "elicitation/create": "CreateFormSessionElicitationRequest",
    "elicitation/complete": "CompleteElicitationNotification",
    "fs/read_text_file": "ReadTextFileRequest",
    "fs/write_text_file": "WriteTextFileRequest",
    "terminal/create": "CreateTerminalRequest",
    "terminal/output": "TerminalOutputRequest",
    "terminal/wait_for_exit": "WaitForTerminalExitRequest",
    "terminal/kill": "KillTerminalRequest",
    "terminal/release": "ReleaseTerminalRequest",
    "$/cancel_request": "CancelRequestNotification",
    "auth/status_update": "",  # the library does not know it yet
    "mcp/message": "",  # of the library's day it was another message
}

UPDATES = ("subagent_update", "session_message")
"""Updates that the library does not know yet."""


def fault(message: Message, method: str | None) -> str | None:
    """What is wrong with a message of an agent's; ``method`` is the one that a response is for."""
    return V1.fault(message, method)


@dataclass(frozen=True)
class Version:
    """A version of the protocol: the library's module, and its model for each message.

    ``newer`` are fields that the library does not know yet, or writes in another way.
    """

    module: str
    responses: Mapping[str, str]
    requests: Mapping[str, str]
    newer: frozenset[str] = frozenset()

    def fault(self, message: Message, method: str | None) -> str | None:
        """What is wrong with a message; ``method`` is the one that a response is for."""
        if message.get("jsonrpc") != "2.0":
            return f"jsonrpc is not 2.0: {message}"
        if "method" in message:
            if as_update(message).get("sessionUpdate") in UPDATES:
                return None
            name = self.requests.get(message["method"])
            if name is None and not message["method"].startswith("_"):
                return f"the protocol has no method {message['method']!r}"
            if as_object(message.get("params")).get("mode") == "url":
                name = str(name).replace("Form", "Url")
            return self._mismatch(name, message.get("params"))
        if "error" in message:
            return _error_fault(message["error"])
        if "result" not in message:
            return f"neither result nor error: {message}"
        return self._mismatch(self.responses.get(method or ""), message["result"])

    def _mismatch(self, name: str | None, value: Any) -> str | None:
        """The model's complaint, or what it did not take over from the message."""
        from pydantic import ValidationError

        if not name:
            return None
        model: Any = getattr(import_module(self.module), name)
        try:
            read = model.model_validate(value)
        except ValidationError as error:
            return f"{name}: {error}"
        kept = read.model_dump(mode="json", by_alias=True, exclude_unset=True)
        lost = [f"{at} {what}" for at, what in _lost(value, kept, name) if at not in self.newer]
        return f"{'; '.join(lost)} in {value}" if lost else None


V1 = Version(
    "acp.schema",
    RESPONSES,
    REQUESTS,
    frozenset(
        {
            "InitializeResponse.agentCapabilities.auth.status",
            "InitializeResponse.agentCapabilities.sessionCapabilities.archive",
            "InitializeResponse.agentCapabilities.sessionCapabilities.status",
            "InitializeResponse.agentCapabilities.sessionCapabilities.systemPrompt",
            "InitializeResponse.agentCapabilities.sessionCapabilities.title",
            "ListSessionsResponse.sessions[].archived",
        }
    ),
)


def as_update(message: Message) -> Message:
    """What a message tells of a session; nothing where it does not."""
    return as_object(as_object(message.get("params")).get("update"))


def as_object(value: Any) -> Message:
    """A value that should be an object; an empty one where it is none."""
    return cast("Message", value) if isinstance(value, dict) else {}


def _error_fault(error: Any) -> str | None:
    match error:
        case {"code": int(), "message": str()}:
            return None
        case _:
            return f"not an error object: {error}"


def _lost(value: Any, kept: Any, where: str) -> Iterator[tuple[str, str]]:
    """What of a value the models did not keep, and where; they may add what goes without saying."""
    match value, kept:
        case dict(), dict():
            for key in cast("Message", value):
                if key in kept:
                    yield from _lost(value[key], kept[key], f"{where}.{key}")
                elif (key, value[key]) != AGENT_METHOD:
                    yield f"{where}.{key}", "is not known"
        case list(), list():
            for item, read in zip_longest(cast("list[Any]", value), cast("list[Any]", kept)):
                yield from _lost(item, read, f"{where}[]")
        case _:
            if value != kept:
                yield where, f"is understood as {kept!r}"
