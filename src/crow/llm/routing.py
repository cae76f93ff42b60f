"""Several models behind one: a request that names another model goes to that model's endpoint."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, TypeAlias

from crow.core.cache import Closable
from crow.core.errors import ModelError
from crow.core.ports.llm import LLM, Completion, Delta, KeyUser, Request
from crow.core.support.validation import implementing, implements
from crow.ports.models import (
    ModelFacts,
    facts_of,
    inputs_of,
    thought_levels_of,
    url_of,
)

if TYPE_CHECKING:
    from crow.llm.routes import ProviderRoutes

Look: TypeAlias = Callable[[], Awaitable[list[str]]]
NONE: Mapping[str, str] = MappingProxyType({})


class Beside(Protocol):
    """Work that is done while a model thinks."""

    def begin(self) -> None:
        """A request goes out."""
        ...

    def pause(self) -> None:
        """The model answers."""
        ...


class Routed:
    """An LLM that stands for all that ``find`` knows, each made when it is first asked.

    ``find(None)`` makes the model of requests that name none, ``find("ollama/qwen3")`` another;
    it raises `ModelError` where there is none. ``models`` are names to choose from; where it is
    empty, ``look`` finds them when `find_models` is first called; until then those stand there that
    were ``known`` an earlier time. ``call`` gives the one name
    that a model has in lists, however it is written; ``purposes`` are models for what is asked
    beside a conversation. ``routes`` gives what a client may route, which counts from `renew` on.
    ``beside`` is done while a model thinks.
    """

    def __init__(
        self,
        find: Callable[[str | None], LLM],
        models: Iterable[str] = (),
        look: Look | None = None,
        call: Callable[[str | None], str] | None = None,
        purposes: Mapping[str, str] = NONE,
        known: Callable[[], Iterable[str]] = tuple,
        routes: Callable[[], ProviderRoutes] | None = None,
        beside: Beside | None = None,
    ) -> None:
        self._models = tuple(models) or None
        self._known = known
        self.purposes = purposes
        self._find = find
        self._call = call
        self._asked: Look | None = None if self._models else look
        self._look = self._asked
        self.routes = routes
        self._beside = beside
        self._found: dict[str | None, LLM] = {}
        self._former: list[LLM] = []
        self._used: set[str] = set()

    @property
    def models(self) -> tuple[str, ...]:
        """The names to choose from: as given, as found, else as they are ``known``."""
        if self._models is None:
            self._models = tuple(self._known())
        return self._models

    @property
    def first(self) -> LLM:
        """The model of requests that name none. Raises `ModelError` where none can be had."""
        if None not in self._found:
            self._found[None] = self._find(None)
        return self._found[None]

    @property
    def model(self) -> str:
        """The first model's name."""
        return self.first.model

    @property
    def context_window(self) -> int | None:
        """The first model's window, in tokens."""
        return self.first.context_window

    @property
    def inputs(self) -> frozenset[str]:
        """What the first model takes beside text."""
        known = inputs_of(self.first)
        return frozenset({"image"} if known is None else known)

    @property
    def thought_levels(self) -> tuple[str, ...]:
        """How hard the first model can be made to think."""
        return thought_levels_of(self.first)

    @property
    def base_url(self) -> str:
        """The first model's address; empty where it has none."""
        return url_of(self.first)

    @property
    def info(self) -> ModelFacts | None:
        """What is known of the first model."""
        return facts_of(self.first)

    def named(self, model: str) -> LLM:
        """The LLM of a name. Raises `ModelError` (unconfigured) where there is none."""
        with suppress(ModelError):  # the first one may lack what this one has
            if model == self.first.model:
                return self.first
        if model not in self._found:
            self._found[model] = self._find(model)
        return self._found[model]

    def listed_name(self, model: str | None = None) -> str:
        """What a model, the first one without a name, is called in lists. Raises `ModelError`."""
        return self._call(model) if self._call else model or self.model

    async def find_models(self) -> bool:
        """Ask once which models there are; True where that has changed ``models``."""
        look, self._look = self._look, None
        if look is None:
            return False
        try:
            before, found = self.models, tuple(await look())
        except BaseException:
            self._look = look
            raise
        self._models = found or before
        return self._models != before

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Completion, None]:
        """Ask the model that the request names."""
        llm = self.first if request.model is None else self.named(request.model)
        if request.model is not None:
            request = replace(request, model=None)
        beside = self._beside
        if beside is not None:
            beside.begin()
        try:
            async with aclosing(llm.stream(request)) as deltas:
                async for delta in deltas:
                    if beside is not None:
                        beside.pause()
                        beside = None
                    yield delta
        finally:
            if beside is not None:
                beside.pause()

    @property
    def secrets(self) -> frozenset[str]:
        """The keys that the models have used, those that were forgotten among them."""
        for llm in (*self._found.values(), *self._former):
            self._used |= {*llm.secrets} if implements(llm, KeyUser) else set()
        return frozenset(self._used)

    async def forget(self) -> None:
        """Make every model anew when it is asked next, as after a change of keys."""
        self._used |= self.secrets
        found, self._found = self._found, {}
        await _close(found.values())

    def become(self, other: Routed) -> None:
        """Stand for what another one stands for, from the next request on; open ones end first."""
        self._models, self._find = other._models, other._find
        self._known, self._asked, self.routes = other._known, other._asked, other.routes
        self.purposes = other.purposes
        self._call = other._call
        self.renew()

    def renew(self) -> None:
        """Make every model anew from the next request on, and look again which there are."""
        self._look = self._asked
        if self._asked is not None:
            self._models = None
        self._former += self._found.values()
        self._found = {}

    async def aclose(self) -> None:
        """Close what the models hold open."""
        await _close((*self._found.values(), *self._former))


async def _close(models: Iterable[LLM]) -> None:
    for llm in implementing(models, Closable):
        await llm.aclose()
