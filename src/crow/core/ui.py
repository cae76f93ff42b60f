"""The user, as a hook can ask; a hook's time stands still meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, Protocol, TypeVar

from crow.core.events import Event, Notice, Severity
from crow.core.ports.client import LEFT, Client, FormClient, OptionKind, PageClient, Question
from crow.core.session import Session
from crow.core.support.clock import Clock, standing
from crow.core.support.validation import implements
from crow.core.verdicts import Ask, Deny, Ruling

if TYPE_CHECKING:
    from crow.core.ports.client import Filled, Form

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Choice = TypeVar("Choice", bound=str)
Asked = TypeVar("Asked", Question, "Form")
UNAWAITED = "before it is awaited: write await in front of the call"

QUESTION = "question"
REFUSED_BY_USER = Ruling(Deny("the user said no"))


class Asking(Protocol):
    """A context, as far as the user is concerned."""

    owner: str
    clock: Clock | None
    session: Session
    run: Any

    @property
    def client(self) -> Client: ...
    async def emit(self, event: Event) -> None: ...


class Awaited(Coroutine[Any, Any, T_co]):
    """A coroutine of which nothing can be read before it is awaited: a missing ``await`` is told.

    A plain one counts as true, and a guard that asks whether its user agrees would let all pass.
    """

    __slots__ = ("_coroutine",)

    def __init__(self, coroutine: Coroutine[Any, Any, T_co]) -> None:
        self._coroutine = coroutine

    if not TYPE_CHECKING:  # which would take any name for one that is there

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"{name!r} is not there {UNAWAITED}")

    def __bool__(self) -> NoReturn:
        raise TypeError(f"it is neither true nor false {UNAWAITED}")

    def __await__(self) -> Generator[Any, Any, T_co]:
        return self._coroutine.__await__()

    def send(self, value: Any) -> Any:
        """Go on, for a task."""
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        """Let it hear of an error or a cancellation."""
        return self._coroutine.throw(*error)

    def close(self) -> None:
        """End it where it stands."""
        self._coroutine.close()


def awaited(method: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """An ``async def`` whose calls give such coroutines."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        return Awaited(method(*args, **kwargs))

    return call


class UI:
    """The user, as a hook can ask. The hook's clock stands still meanwhile."""

    __slots__ = ("_ctx",)

    def __init__(self, ctx: Asking) -> None:
        self._ctx = ctx

    @awaited
    async def confirm(self, text: str, *, default: bool = False) -> bool:
        """A yes or no."""
        return bool(await self._ask(Question(text, "confirm", default=default)))

    async def agreed(self, ruling: Ruling) -> Ruling:
        """A gate's ruling, with its question put to the user where a hook wants one.

        A client that fails has permitted nothing.
        """
        if not isinstance(ruling.verdict, Ask):
            return ruling
        try:
            said = await self.confirm(ruling.verdict.reason or "Go on?")
        except Exception as error:  # noqa: BLE001 - of a client, which is anybody's
            return Ruling(Deny(f"the user cannot be asked: {type(error).__name__}: {error}"))
        return Ruling(None, ruling.answer) if said else REFUSED_BY_USER

    @awaited
    async def select(
        self,
        text: str,
        choices: Sequence[Choice],
        *,
        default: Choice | None = None,
        kinds: Sequence[OptionKind] = (),
        detail: str = "",
        word: str = "",
        url: str = "",
    ) -> Choice | None:
        """One of several; the default where nobody can answer.

        ``kinds`` says what each choice permits, ``detail`` what to know before answering, ``word``
        what must be typed for the last choice, so that it is not made by chance, and ``url`` the
        page that the first one leads to.
        """
        told = tuple(choices), default, tuple(kinds), detail, word, url
        question = Question(text, "select", *told)
        return await self._ask(question)

    @awaited
    async def ask(self, text: str, *, default: str = "") -> str:
        """A line of text."""
        return str(await self._ask(Question(text, "text", default=default)))

    async def fill_in(self, form: Form) -> Filled | None:
        """A form as a whole; None where the client shows none like it: ask for each part then."""
        ctx, client = self._ctx, self._ctx.client
        if not implements(client, FormClient):
            return None
        asked = self._of_call(form)
        return await self._wait(partial(client.fill_in, ctx.session.id, asked), form.text, LEFT)

    async def complete(self, page_id: str) -> None:
        """Tell whoever shows a page that what was to be done there is done."""
        client = self._ctx.client
        if implements(client, PageClient):
            await client.complete(self._ctx.session.id, page_id)

    async def notify(self, text: str, *, severity: Severity = "info") -> None:
        """Tell the user something; never part of the conversation."""
        await self._ctx.emit(Notice(text, severity, self._ctx.owner))

    async def _ask(self, question: Question) -> Any:
        ctx, asked = self._ctx, self._of_call(question)
        put = partial(ctx.client.ask, ctx.session.id, asked)
        return await self._wait(put, question.text, question.default)

    def _of_call(self, asked: Asked) -> Asked:
        call = getattr(self._ctx, "call", None)
        return asked if call is None else replace(asked, call_id=call.id)

    async def _wait(self, put: Callable[[], Awaitable[Any]], text: str, default: Any) -> Any:
        ctx, session = self._ctx, self._ctx.session
        if session.closed:
            return default  # nobody is there any more, and it would never end
        with waiting(ctx, text):
            if ctx.run in session.runs:
                return await put()
            return await _withdrawable(put(), session, default)


async def _withdrawable(asking: Awaitable[Any], session: Session, default: Any) -> Any:
    """The answer to a question beside any run; the default where the session is cancelled."""
    task = asyncio.ensure_future(asking)
    task.set_name(QUESTION)
    session.tasks.hold(task)
    try:
        return await task
    except asyncio.CancelledError:
        own = asyncio.current_task()
        if task.cancelled() and own is not None and not own.cancelling():
            return default
        raise
    finally:
        session.tasks.release(task)


def withdraw(session: Session) -> None:
    """Let nobody wait for answers to questions that are asked beside a run."""
    for task in list(session.tasks):
        if task.get_name() == QUESTION:
            task.cancel()


@contextmanager
def waiting(ctx: Asking, text: str) -> Generator[None]:
    """Stop the running hook's clock, and say that the user is asked this."""
    with standing(ctx.clock), ctx.session.root.asked(text):
        yield
