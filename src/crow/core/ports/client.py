"""The port of a client: what whoever is at the other end is asked and shown."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from crow.core.events import Event
from crow.core.support.frozen import frozen
from crow.core.support.validation import implements
from crow.core.tools import Call, Diff, Location, ToolKind

OptionKind = Literal["allow_once", "allow_always", "reject_once", "reject_always"]


@frozen
class Option:
    """One answer that the user can give when asked for permission."""

    id: str
    name: str
    kind: OptionKind


Keep: TypeAlias = Callable[[str, Literal["allow", "ask", "deny"], bool], Awaitable[bool | None]]
"""Has a rule remembered; False where that is none."""
ALLOW_ONCE = Option("allow_once", "Allow once", "allow_once")
"""The answer that lets one call through."""
REJECT_ONCE = Option("reject_once", "Reject", "reject_once")
"""The answer that refuses one call."""


@frozen
class PermissionRequest:
    """A question to the user: may this call run? ``reason`` says why it is asked.

    ``diffs`` are the changes that it is about to make, as far as its tool can tell;
    ``explanation`` says in a line what it would do, empty where nobody knows more. ``rules`` are
    those with which it would not be asked, and ``keep`` has such a rule remembered, as an `Ask`'s
    does: a client that lets its user edit them keeps them itself, and answers ``allow_once``.
    """

    call: Call
    args: Mapping[str, Any]
    title: str
    kind: ToolKind
    reason: str
    options: Sequence[Option]
    locations: tuple[Location, ...] = ()
    diffs: tuple[Diff, ...] = ()
    explanation: str = ""
    rules: Sequence[str] = ()
    keep: Keep | None = None

    @property
    def description(self) -> str:
        """Why it is asked, and what the call would do, a paragraph each."""
        explained = f"It {self.explanation}." if self.explanation else ""
        return "\n\n".join(filter(None, (self.reason, explained)))

    @property
    def details(self) -> str:
        """The arguments as JSON; empty where the diffs, or the title alone, tell of all of them."""
        if self.diffs or self._is_told:
            return ""
        return json.dumps(self.args, ensure_ascii=False, indent=2, default=str)

    @property
    def _is_told(self) -> bool:
        match dict(self.args):
            case {"command": str(command), **rest} if not rest.keys() - {"description"}:
                return self.title.startswith(command)
            case {**args} if len(args) <= 1:
                return all(self.title in (v, f"{self.call.name} {v}") for v in args.values())
            case _:
                return False


@frozen
class Question:
    """A question of a hook's to the user.

    ``kind`` says what an answer is: ``confirm`` a bool, ``select`` one of ``choices``,
    ``text`` a string. ``kinds`` says what the choices mean, where they permit something.
    ``detail`` is what the user should know before answering, in lines. ``word`` is what somebody
    who types must write for the last choice, which then no number and no key alone stands for.
    ``url`` is a page that the first choice leads to; a client may show it in its own way.
    ``call_id`` is the tool call at which the hook asks, where it is one.
    """

    text: str
    kind: Literal["confirm", "select", "text"]
    choices: tuple[str, ...] = ()
    default: Any = None
    kinds: tuple[OptionKind, ...] = ()
    detail: str = ""
    word: str = ""
    url: str = ""
    call_id: str = ""


class Files(Protocol):
    """A client's files: what its user sees, unsaved changes included.

    ``PermissionError`` is the client's refusal; after any other error the disk may be tried.
    """

    async def read(self, path: str) -> str:
        """The text of a file. Raises ``FileNotFoundError``, ``PermissionError``, ``OSError``."""
        ...

    async def write(self, path: str, text: str) -> None:
        """Replace a file's text. Raises ``PermissionError`` or ``OSError``."""
        ...


class Terminal(Protocol):
    """A command that runs where the client's user sees it."""

    id: str

    async def output(self) -> tuple[str, bool]:
        """What it printed so far, and whether the beginning was cut off."""
        ...

    async def wait(self) -> tuple[int | None, str | None]:
        """Wait for its end: exit status and signal name, one of them None."""
        ...

    async def kill(self) -> None:
        """End the command; what it printed can still be read."""
        ...

    async def release(self) -> None:
        """Free it; must be called once."""
        ...


class Terminals(Protocol):
    """A client's terminals."""

    async def create(
        self, command: str, args: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: int
    ) -> Terminal:
        """Start a command; ``limit`` is how many bytes of output are kept."""
        ...


class Client(Protocol):
    """Whoever is at the other end: an editor, a terminal, a test. Nobody, as `NullClient`.

    It may have more: the core asks for `FormClient`, `PageClient` and `AttendedClient`, extensions
    and faces for the protocols of `crow.ports.clients`.
    """

    files: Files | None
    terminals: Terminals | None

    async def update(self, session_id: str, event: Event) -> None:
        """Show an event. Waits while the client cannot take more."""
        ...

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        """Ask the user; the id of the chosen option, or None where nobody can answer."""
        ...

    async def ask(self, session_id: str, question: Question) -> Any:
        """Ask the user something else; the question's default where nobody can answer."""
        ...


class NullClient:
    """A client for programs: sees nothing, answers nothing."""

    answers = False
    files: Files | None = None
    terminals: Terminals | None = None

    async def update(self, session_id: str, event: Event) -> None:
        """Show it to no one."""

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        """Nobody is there to answer."""
        return None

    async def ask(self, session_id: str, question: Question) -> Any:
        """The default, since nobody is there to answer."""
        return question.default


@frozen
class Form:
    """A form for a user: several things that are asked at once, or a page to visit.

    ``schema`` is JSON Schema of an object whose properties are texts, numbers, booleans, choices
    (``enum``, or ``oneOf`` with titles) and arrays of choices, as MCP's elicitation has it. With a
    ``url`` it is that page instead, and ``page_id`` names it, for `UI.complete`. ``call_id`` is
    the tool call that it belongs to, where it is one.
    """

    text: str
    schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    url: str = ""
    page_id: str = ""
    call_id: str = ""


@frozen
class Filled:
    """A user's answer to a `Form`.

    ``content`` is what they filled in, as their client sent it: to be held against the schema. To
    ``accept`` a page is to be willing to visit it.
    """

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any] = field(default_factory=dict[str, Any])


LEFT = Filled("cancel")
"""Nobody has answered."""


@runtime_checkable
class FormClient(Protocol):
    """A client that shows forms."""

    async def fill_in(self, session_id: str, form: Form) -> Filled | None:
        """Ask the user; None where none like it is shown."""
        ...


@runtime_checkable
class PageClient(Protocol):
    """A client that knows of pages which its user was shown."""

    async def complete(self, session_id: str, page_id: str) -> None:
        """Know that the user is done with one."""
        ...


@runtime_checkable
class AttendedClient(Protocol):
    """A client that says whether anybody is there to answer."""

    @property
    def answers(self) -> bool:
        """False where nobody is."""
        ...


def is_attended(client: Client) -> bool:
    """True where somebody may be there to answer."""
    return client.answers if implements(client, AttendedClient) else True
