"""The ports of the core, as protocols: a model, tools, a client, a store.

Whoever has the methods fits; nothing is inherited.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from typing import Any, Literal, Protocol, TypeAlias, cast

from crow.core.events import CallDelta, Event, Notice, Retrying, TextDelta, ThoughtDelta
from crow.core.frozen import frozen, mutable
from crow.core.messages import Message, ToolSpec, Usage
from crow.core.tools import Call, Diff, Location, ToolKind, ToolResult

FinishReason = Literal["stop", "tool_calls", "length", "content_filter"]


@mutable
class Request:
    """One request to a model. ``params`` go into the request's body as they are.

    ``messages`` starts with the system message where there is one. ``model`` None means the
    model that the endpoint was made with. ``session_id`` names the conversation to caches.
    ``trace_context`` is that of the span which the request is, for the headers of HTTP.
    """

    messages: list[Message]
    tools: list[ToolSpec] = field(default_factory=list[ToolSpec])
    model: str | None = None
    params: dict[str, Any] = field(default_factory=dict[str, Any])
    session_id: str = ""
    message_id: str = ""
    trace_context: Mapping[str, str] = field(default_factory=dict[str, str])


@frozen
class Completion:
    """A model's whole answer to one request.

    ``finish`` is why it ended; that calls are there, not the reason, decides whether tools run.
    Call ids are unique within a request. A completion that was cut off marks its calls with a
    ``fault``. ``opaque`` are fields of the message that the endpoint wants back as it sent them,
    its thoughts among them, and ``origin`` (see `Message`); without them the
    ``reasoning`` is kept as text.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    finish: FinishReason = "stop"
    usage: Usage | None = None
    model: str = ""
    opaque: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    def message(self) -> Message | None:
        """The assistant message for the history; None where the model said nothing at all."""
        if not self.text and not self.calls:
            return None
        message: Message = {"role": "assistant", "content": self.text or None}
        if self.calls:
            message["tool_calls"] = [call.as_message_part() for call in self.calls]
        if self.opaque:
            message.update(cast(Message, self.opaque))
        elif self.reasoning:
            message["reasoning_content"] = self.reasoning
        return message


Delta: TypeAlias = TextDelta | ThoughtDelta | CallDelta | Retrying | Notice
"""What a model yields before its `Completion`."""


class LLM(Protocol):
    """A model. ``stream`` yields deltas as they come and last of all one `Completion`.

    It raises `ModelError` where no answer can be had; retries are its own affair, and text that
    it has yielded is never yielded again. Closing the iterator frees the connection.

    More members are used where an object has them: ``named(model) -> LLM``, the LLM of another
    model's name, which raises `ModelError` where there is none; ``models``, names to choose from,
    and ``async find_models() -> bool``, which looks for more; ``inputs``, what is taken beside text
    (``image``, ``audio``); ``thought_levels``, what the parameter ``reasoning_effort`` can be;
    ``purposes``, names of models for what is asked beside a conversation (`Context.model_for`);
    ``async forget()``, which is called when keys have changed; ``secrets``, the keys that it has
    used, which no tool's output shows.
    """

    @property
    def model(self) -> str:
        """The name of the model that answers where a request names none."""
        ...

    @property
    def context_window(self) -> int | None:
        """How many tokens a request may have, where that is known."""
        ...

    def stream(self, request: Request) -> AsyncGenerator[Delta | Completion, None]:
        """Ask the model."""
        ...


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

    A terminal has one more member: ``obey(sequence)``, which sends it a control sequence.

    ``async ready()`` is used where a client has it: it returns once the session is known there,
    and questions can be asked. ``answers`` is False where a client has it and nobody is there to
    answer: nobody is called to look at a question then.

    ``async fill_in(session_id, form) -> Filled | None`` is used where a client has it: it shows a
    `Form`, None where it shows none like it; ``async complete(session_id, page_id)`` tells it that
    the user is done with a page that it was shown.
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


class Launch(Protocol):
    """How a program is started, in the place of how it was meant to be."""

    @property
    def argv(self) -> Sequence[str]:
        """What is started."""
        ...

    @property
    def env(self) -> Mapping[str, str]:
        """All of its environment."""
        ...

    @property
    def pass_fds(self) -> Sequence[int]:
        """The descriptors that it inherits."""
        ...

    @property
    def restrict(self) -> Callable[[], object] | None:
        """What the thread that starts it calls before, so that it begins with less."""
        ...

    @property
    def started(self) -> Callable[[int], object] | None:
        """What is called with the number of its process, once it runs."""
        ...

    @property
    def ask(self) -> Callable[[int], bool] | None:
        """What sends a signal (its number) to the command where what is started stands for it.

        False where that cannot be, and what is started gets it. A launch need not have this.
        """
        ...

    @property
    def ended(self) -> Callable[[int | None], object] | None:
        """What is called with the exit status when nobody waits for the program any more.

        None where it still runs, minus the signal where one has ended it. A launch need not have
        this.
        """
        ...


class Launcher(Protocol):
    """Says how programs are started for a model, so that they can be confined."""

    def launch(
        self, argv: Sequence[str], cwd: str, env: Mapping[str, str]
    ) -> AbstractContextManager[Launch]:
        """How a program is started; the context is left when it and its output have ended.

        Raises ``OSError`` where it cannot be.
        """
        ...


class ToolEnvironment(Protocol):
    """What a running tool has at hand; a `ToolContext` is one.

    ``cwd`` is the session's directory (absolute), ``state`` is JSON kept with the session,
    ``cache`` is memory of the session that is not stored.
    """

    @property
    def call(self) -> Call: ...
    @property
    def cwd(self) -> str: ...
    @property
    def roots(self) -> tuple[str, ...]:
        """``cwd`` and the session's additional directories, absolute."""
        ...

    @property
    def session_id(self) -> str: ...
    @property
    def state(self) -> dict[str, Any]: ...
    @property
    def cache(self) -> dict[str, Any]: ...
    @property
    def client(self) -> Client: ...
    @property
    def environment(self) -> Mapping[str, str]:
        """What a program that the tool starts finds: this process's, without keys of models."""
        ...

    @property
    def secrets(self) -> Sequence[str]:
        """What no output may show, such as keys of models; results are without it in any case."""
        ...

    @property
    def launcher(self) -> Launcher | None:
        """Who says how programs of this call are started; without one as they are."""
        ...

    async def progress(self, text: str, *, terminal: str | None = None) -> None:
        """Show output of the call while it runs."""
        ...

    async def emit(self, event: Event) -> None:
        """Tell whoever watches."""
        ...


class Tool(Protocol):
    """Something a model can call. ``parameters`` is JSON Schema of an object.

    Five more members are used where an object has them: ``title(args) -> str`` (what a person
    reads), ``locations(args, cwd) -> tuple[Location, ...]``, ``prepare(args, cwd) -> args`` (the
    arguments as hooks are to see them, paths absolute), ``check(args) -> str | None`` (what is
    wrong with arguments; without it the core checks required keys and plain types) and ``async
    preview(args, ctx) -> ToolResult | None``, which is called before the user is asked: what the
    call would do, as ``diffs``, or the failure that it cannot but end in. It changes nothing.
    """

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> dict[str, Any]: ...
    @property
    def kind(self) -> ToolKind: ...
    async def run(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult | str:
        """Do it. Errors meant for the model are results; a raised exception becomes one."""
        ...


class SlashCommand(Protocol):
    """A slash command, as a session's own ones are kept; a `Command` is one."""

    @property
    def name(self) -> str:
        """What is typed behind the slash."""
        ...

    @property
    def description(self) -> str:
        """What it does, in a line."""
        ...

    @property
    def hint(self) -> str:
        """What can be typed behind the name."""
        ...

    @property
    def run(self) -> Callable[[Any], Any]:
        """What is called with the `CommandContext`."""
        ...
