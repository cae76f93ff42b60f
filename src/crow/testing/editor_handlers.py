"""The requests that a fake editor answers an agent; the library's client interface."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from acp.exceptions import RequestError

from crow.testing.wire import Message

if TYPE_CHECKING:
    from acp.schema import EnvVariable

    from crow.testing.shell import Shell, ShellTerminal

Said: TypeAlias = "str | Message"
Answer: TypeAlias = "Said | BaseException | Callable[[Message], Said | Awaitable[Said]]"


class Script(Protocol):
    """The script of an editor: what it answers, and where it keeps what it was asked."""

    files: dict[str, str] | None
    refused: dict[str, str]
    shell: Shell | None
    asked: list[Message]

    def next_permission(self) -> Answer: ...

    def next_answer(self) -> Any: ...


class FakeEditorHandlers:
    """Answers an agent's requests in the name of an editor, and records them in its ``asked``."""

    def __init__(self, editor: Script) -> None:
        self._editor = editor

    async def session_update(self, **_: Any) -> None:
        """Nothing: the wire has recorded it."""

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> Message:
        """Answer as the script says."""
        request: Message = {
            "sessionId": session_id,
            "toolCall": tool_call.model_dump(by_alias=True, exclude_none=True),
            "options": [option.model_dump(by_alias=True, exclude_none=True) for option in options],
        }
        self._editor.asked.append(request)
        answer = self._editor.next_permission()
        if isinstance(answer, BaseException):
            raise answer
        said = answer(request) if callable(answer) else answer
        chosen = await said if isawaitable(said) else said
        if isinstance(chosen, dict):
            return chosen
        if chosen == "cancelled":
            return {"outcome": {"outcome": "cancelled"}}
        ids = [o["optionId"] for o in request["options"] if chosen in (o["optionId"], o["kind"])]
        return {"outcome": {"outcome": "selected", "optionId": (ids or [chosen])[0]}}

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Message:
        """Fill in a form, or look at a page, as the script says."""
        told = mode.model_dump(mode="json", by_alias=True, exclude_none=True)
        schema = told.pop("requestedSchema", {})
        self._editor.asked.append({"message": message, "schema": schema, **told})
        answer = self._editor.next_answer()
        is_function = callable(answer)
        answer = await cast(Any, answer)(schema) if is_function else answer
        match answer:
            case None:
                return {"action": "decline"}
            case {"action": str()}:
                return cast("Message", answer)
            case {**content}:
                return {"action": "accept", "content": content}
            case value:
                content = dict.fromkeys(schema.get("properties", ()), value)
                return {"action": "accept", "content": content}

    async def complete_elicitation(self, **_: Any) -> None:
        """Nothing: the wire has recorded it."""

    # files

    async def read_text_file(
        self,
        session_id: str,
        path: str,
        line: int | None = None,
        limit: int | None = None,
        **_: Any,
    ) -> Message:
        """A buffer's text, else the file's."""
        self._ask("fs/read_text_file", path)
        files = self._editor.files
        if files is None:
            raise RequestError.method_not_found("fs/read_text_file")
        if path not in files and not Path(path).is_file():
            raise RequestError.resource_not_found(path)
        text = files[path] if path in files else Path(path).read_text("utf-8")
        lines = text.splitlines(keepends=True)[(line or 1) - 1 :]
        return {"content": "".join(lines[:limit])}

    async def write_text_file(self, session_id: str, path: str, content: str, **_: Any) -> Message:
        """Change the buffer and save it."""
        self._ask("fs/write_text_file", path)
        if self._editor.files is None:
            raise RequestError.method_not_found("fs/write_text_file")
        self._editor.files[path] = content
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(content, "utf-8")
        return {}

    def _ask(self, method: str, path: str) -> None:
        """Record a request for a file; raise where the script refuses it."""
        self._editor.asked.append({"method": method, "path": path})
        if method in self._editor.refused:
            raise RequestError.internal_error({"details": self._editor.refused[method]})

    # terminals

    async def create_terminal(
        self,
        session_id: str,
        command: str,
        args: list[str] | None = None,
        env: list[EnvVariable] | None = None,
        cwd: str | None = None,
        **_: Any,
    ) -> Message:
        """Run a command."""
        variables = {variable.name: variable.value for variable in env or ()}
        return {"terminalId": await self._shell.create(command, args or [], cwd, variables)}

    async def terminal_output(self, terminal_id: str, **_: Any) -> Message:
        """What a command printed so far."""
        printed = self._terminal(terminal_id).printed.decode("utf-8", "replace")
        return {"output": printed, "truncated": False}

    async def wait_for_terminal_exit(self, terminal_id: str, **_: Any) -> Message:
        """Wait for a command's end."""
        return {"exitCode": await self._terminal(terminal_id).wait()}

    async def kill_terminal(self, terminal_id: str, **_: Any) -> Message:
        """End a command."""
        self._terminal(terminal_id).kill()
        return {}

    async def release_terminal(self, terminal_id: str, **_: Any) -> Message:
        """End a command and forget its terminal."""
        terminal = self._terminal(terminal_id)
        terminal.kill()
        terminal.is_released = True
        return {}

    @property
    def _shell(self) -> Shell:
        if self._editor.shell is None:
            raise RequestError.method_not_found("terminal/create")
        return self._editor.shell

    def _terminal(self, terminal_id: str) -> ShellTerminal:
        terminal = self._shell.terminals.get(terminal_id)
        if terminal is None or terminal.is_released:
            raise RequestError.resource_not_found(terminal_id)
        return terminal
