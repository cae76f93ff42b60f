"""What a model may have beside what an `LLM` must: a face then offers more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol, runtime_checkable

from crow.core.ports.llm import LLM
from crow.core.support.validation import implements


@runtime_checkable
class ModelList(Protocol):
    """A model that knows names of others to choose from."""

    @property
    def models(self) -> Sequence[str]:
        """The names. Raises `ModelError` where it cannot say."""
        ...


@runtime_checkable
class ListedModels(Protocol):
    """A model that knows under which name each is offered, whoever has written it how."""

    def listed_name(self, model: str | None) -> str:
        """The one name of a model, its own without one."""
        ...


@runtime_checkable
class ModelFinder(Protocol):
    """A model that can look for others to choose from."""

    async def find_models(self) -> bool:
        """Look for more; True where there are others now."""
        ...


@runtime_checkable
class MultimodalModel(Protocol):
    """A model that says what it takes beside text."""

    @property
    def inputs(self) -> Collection[str]:
        """Of ``image`` and ``audio`` what it takes."""
        ...


@runtime_checkable
class ReasoningModel(Protocol):
    """A model whose thinking has levels."""

    @property
    def thought_levels(self) -> Sequence[str]:
        """What the parameter ``reasoning_effort`` of a request can be."""
        ...


@runtime_checkable
class KeyHolder(Protocol):
    """A model that remembers keys."""

    async def forget(self) -> None:
        """Look for keys anew: they have changed."""
        ...


@runtime_checkable
class KeyedModel(Protocol):
    """A model that says where its key is from."""

    @property
    def key_origin(self) -> str:
        """The place, for people."""
        ...


@runtime_checkable
class RemoteModel(Protocol):
    """A model behind an address."""

    @property
    def base_url(self) -> str | None:
        """What stands before the paths of its requests; None where nobody knows."""
        ...


class ModelPrices(Protocol):
    """The prices of a model, in US dollars for a million tokens; 0 for a cache that costs none."""

    @property
    def input(self) -> float: ...
    @property
    def output(self) -> float: ...
    @property
    def cache_read(self) -> float: ...
    @property
    def cache_write(self) -> float: ...


class ModelFacts(Protocol):
    """What is known of a model."""

    @property
    def max_output(self) -> int | None:
        """The tokens that an answer may have."""
        ...

    @property
    def prices(self) -> ModelPrices | None: ...


@runtime_checkable
class KnownModel(Protocol):
    """A model of which something is known."""

    @property
    def info(self) -> ModelFacts | None: ...


@runtime_checkable
class RoutedModels(Protocol):
    """A model that stands for those of providers, which a client may route elsewhere."""

    @property
    def routes(self) -> Callable[[], Any] | None:
        """Gives the routes, a `crow.llm.routes.ProviderRoutes`; None where there can be none."""
        ...

    def renew(self) -> None:
        """Ask each where it is now, from the next request on."""
        ...


def inputs_of(llm: LLM) -> Collection[str] | None:
    """What a model takes beside text; None where it does not say. Raises `ModelError`."""
    return llm.inputs if implements(llm, MultimodalModel) else None


def thought_levels_of(llm: LLM) -> tuple[str, ...]:
    """The levels of a model's thinking; none where it has none. Raises `ModelError`."""
    return tuple(llm.thought_levels) if implements(llm, ReasoningModel) else ()


def names_of(llm: LLM) -> Sequence[str]:
    """The names of models to choose from; none where a model knows none. Raises `ModelError`."""
    return llm.models if implements(llm, ModelList) else ()


def url_of(llm: LLM) -> str:
    """The address of a model; empty where it has none. Raises `ModelError`."""
    url: object = llm.base_url if implements(llm, RemoteModel) else ""
    return url if isinstance(url, str) else ""


def facts_of(llm: LLM) -> ModelFacts | None:
    """What is known of a model; None where nobody knows anything. Raises `ModelError`."""
    info = llm.info if implements(llm, KnownModel) else None
    return info if implements(info, ModelFacts) else None


def has_routes(llm: LLM) -> bool:
    """True where a client may route a model's providers."""
    return implements(llm, RoutedModels) and llm.routes is not None
