"""The wire protocol of a model, as protocols: how requests are written and replies read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from crow.core.errors import ModelError
from crow.core.ports.llm import Completion, Delta, Request
from crow.llm.http.assembly import Assembly
from crow.llm.http.encoding import Encoder
from crow.llm.http.request_format import RequestFormat


class WireReply(Protocol):
    """One attempt at an answer: takes events, gives deltas, and at the end a `Completion`.

    ``said`` is what it has said so far. ``finished`` once the endpoint gave its reason for ending,
    ``complete`` once nothing more is to be expected, ``said_nothing`` where nothing at all came. A
    reply whose endpoint may pause has a method ``resume`` beside these: it gives the message that
    the endpoint wants behind the others to go on, if it paused, and then the reply takes the events
    of one more response.
    """

    said: Assembly
    complete: bool

    @property
    def finished(self) -> bool: ...

    @property
    def said_nothing(self) -> bool:
        """True where neither text nor calls nor a reason to end came."""
        return self.said.is_empty and not self.finished

    def take(self, event: dict[str, Any], deltas: list[Delta]) -> None:
        """Add one event; what it shows goes to ``deltas``. Raises `ModelError` for an error."""
        ...

    def end(self, deltas: list[Delta]) -> None:
        """Show what was held back."""
        self.said.end(deltas)

    def completion(self) -> Completion:
        """The whole answer; its calls are marked where it was cut off."""
        ...


class Wire(Protocol):
    """A protocol of models over HTTP with server-sent events.

    One object serves one endpoint; its ``encoder`` remembers what it has encoded. ``name`` is what
    people make such models by.
    """

    name: str
    encoder: Encoder

    def path(self, model: str) -> str:
        """What stands behind the base URL, with a slash before it."""
        ...

    def key_headers(self, key: str) -> Mapping[str, str]:
        """The headers, in lower case, that carry a key: as a bearer's."""
        return {"authorization": f"Bearer {key}"}

    def headers(self, request: Request, form: RequestFormat) -> Mapping[str, str]:
        """Headers of one request alone."""
        return {}

    def body(
        self, request: Request, model: str, params: Mapping[str, Any], form: RequestFormat
    ) -> bytes:
        """A request's JSON; ``params`` go into it as they are.

        Raises ``TypeError`` and ``ValueError`` where it is no JSON.
        """
        ...

    def milder(self, form: RequestFormat, error: ModelError) -> RequestFormat | None:
        """The form without what was refused just now, images aside; else None."""
        ...

    def reply(self, said: Assembly, form: RequestFormat) -> WireReply:
        """A new attempt at an answer, which is put together in ``said``."""
        ...
