"""Holds what an agent sends against the protocol's schema, strictly: nothing may get lost."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, cast

Message = dict[str, Any]

AGENT_METHOD = ("type", "agent")
DRAFTED = "InitializeResponse.agentCapabilities.sessionCapabilities.title"
"""In the protocol's draft, and not yet in its library."""
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
    "fs/read_text_file": "ReadTextFileRequest",
    "fs/write_text_file": "WriteTextFileRequest",
    "terminal/create": "CreateTerminalRequest",
    "terminal/output": "TerminalOutputRequest",
    "terminal/wait_for_exit": "WaitForTerminalExitRequest",
    "terminal/kill": "KillTerminalRequest",
    "terminal/release": "ReleaseTerminalRequest",
    "$/cancel_request": "CancelRequestNotification",
}


def fault(message: Message, method: str | None) -> str | None:
    """What is wrong with a message of an agent's; ``method`` is the one that a response is for."""
    if message.get("jsonrpc") != "2.0":
        return f"jsonrpc is not 2.0: {message}"
    if "method" in message:
        name = REQUESTS.get(message["method"])
        if name is None and not message["method"].startswith("_"):
            return f"the protocol has no method {message['method']!r}"
        return _mismatch(name, message.get("params"))
    if "error" in message:
        return _error_fault(message["error"])
    if "result" not in message:
        return f"neither result nor error: {message}"
    return _mismatch(RESPONSES.get(method or ""), message["result"])


def _error_fault(error: Any) -> str | None:
    match error:
        case {"code": int(), "message": str()}:
            return None
        case _:
            return f"not an error object: {error}"


def _mismatch(name: str | None, value: Any) -> str | None:
    """The model's complaint, or what it did not take over from the message."""
    from acp import schema
    from pydantic import ValidationError

    if name is None:
        return None
    model: Any = getattr(schema, name)
    try:
        read = model.model_validate(value)
    except ValidationError as error:
        return f"{name}: {error}"
    kept = read.model_dump(mode="json", by_alias=True, exclude_unset=True)
    lost = list(_lost(value, kept, name))
    return f"{'; '.join(lost)} in {value}" if lost else None


def _lost(value: Any, kept: Any, where: str) -> Iterator[str]:
    """What of a value the models did not keep; they may add what goes without saying."""
    match value, kept:
        case dict(), dict():
            for key in cast("Message", value):
                if key in kept:
                    yield from _lost(value[key], kept[key], f"{where}.{key}")
                elif (key, value[key]) != AGENT_METHOD and f"{where}.{key}" != DRAFTED:
                    yield f"{where}.{key} is not known"
        case list(), list():
            items = cast("list[Any]", value), cast("list[Any]", kept)
            for index, (item, read) in enumerate(zip_longest(*items)):
                yield from _lost(item, read, f"{where}.{index}")
        case _:
            if value != kept:
                yield f"{where} is understood as {kept!r}"
