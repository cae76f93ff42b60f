"""The ``call_next`` of a wrap, and the attempt that it gives: one way through what is wrapped."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Coroutine
from inspect import CORO_CREATED, getcoroutinestate
from typing import Any, Protocol, TypeVar

from crow.core.messages import Message, ToolSpec
from crow.core.ports.llm import Completion, Delta, Request
from crow.core.tools import ToolResult
from crow.core.ui import Awaited

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Attempt(Awaited[T_co]):
    """One way through what a wrap goes around; awaited, it is begun and gives the result."""

    __slots__ = ()

    @property
    def is_new(self) -> bool:
        """Whether nobody has begun it."""
        coroutine: Any = self._coroutine
        return getcoroutinestate(coroutine) == CORO_CREATED


class InPieces(Protocol):
    """A source of an answer piece by piece, the reply last."""

    def pieces(self, new: dict[str, Any] | None) -> AsyncGenerator[Delta | Completion, None]: ...


class RequestAttempt(Attempt[Completion], AsyncIterable[Delta | Completion]):
    """One request to the model: awaited, its pieces go on to the client while they come.

    Iterated, they come here instead, last of all the `Completion`, and go no further than the
    hook lets them: what an async generator yields goes on.
    """

    __slots__ = ("_around", "_new")

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, Completion],
        around: InPieces,
        new: dict[str, Any] | None,
    ) -> None:
        self._coroutine = coroutine
        self._around = around
        self._new = new

    def __aiter__(self) -> AsyncIterator[Delta | Completion]:
        if not self.is_new:
            raise RuntimeError("this attempt was made: call_next() makes another")
        self._coroutine.close()
        return self._around.pieces(self._new)


class Next(Protocol):
    """The ``call_next`` of a wrap; each call is an attempt of its own."""

    def __call__(self) -> Attempt[Any]:
        """Go on."""
        ...


class NextCall(Protocol):
    """The ``call_next`` of ``around_tool``."""

    def __call__(self, args: dict[str, Any] | None = None) -> Attempt[ToolResult]:
        """Run the tool; with other arguments once these are judged as if the model had sent them.

        Where they are refused the result is the failure that says so.
        """
        ...


class NextRequest(Protocol):
    """The ``call_next`` of ``around_llm_request``."""

    def __call__(
        self,
        request: Request | None = None,
        /,
        *,
        messages: list[Message] = ...,
        tools: list[ToolSpec] = ...,
        model: str | None = ...,
        params: dict[str, Any] = ...,
    ) -> RequestAttempt:
        """Ask the model: this request, or another one; what is named is changed in it."""
        ...
