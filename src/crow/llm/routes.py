"""Providers as a client routes them: where each is asked while the process lives, or not at all.

What a client says is never stored, and stands in the place of settings and environment: a provider
that it has routed gets the headers that it gave, and nobody's key.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any

from crow.core.errors import ModelError, nearest
from crow.core.ports.llm import LLM
from crow.core.support.frozen import frozen
from crow.llm.factory import Key, ModelEndpoint, Table, make_model
from crow.llm.listing import sources
from crow.llm.model_names import (
    REHEARSAL,
    Stored,
    known_providers,
    name_meant,
    preset_of,
    provider_of,
    resolve,
    without_provider,
)
from crow.llm.presets import PRESETS, Preset
from crow.llm.source import Source
from crow.process import is_secret

MAIN = "main"
"""The endpoint that settings or environment give by its URL: all models are there."""
API_TYPES: Mapping[str, str] = MappingProxyType(
    {"anthropic": "messages", "openai": "chat", "_gemini": "gemini", "_responses": "responses"}
)
"""Wires by what the protocol calls them; words that it does not know begin with ``_``."""
OWN_TYPES = frozenset({"azure", "bedrock", "vertex"})
"""Providers that are a type of API by themselves."""
DISABLED = "is switched off by the client: choose a model of another provider"


@frozen
class Route:
    """A route to a provider, as a client wants it. ``headers`` go with every request."""

    api_type: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    @property
    def wire(self) -> str:
        """The wire it is asked by."""
        return API_TYPES[self.api_type]

    @property
    def base_url(self) -> str:
        """What stands before the wire's own path: a version follows where a bare host is given."""
        url, version = self.url.rstrip("/"), "/v1beta" if self.wire == "gemini" else "/v1"
        is_bare = url.count("/") == 2 or self.wire == "messages"
        return url + version if is_bare and not url.endswith(version) else url


class ProviderRoutes:
    """The routes that ``said`` makes of settings and environment; None is a provider that is off.

    ``fixed`` are providers whose place the administrator chose. Methods raise `ValueError` for
    what cannot be done.
    """

    def __init__(
        self,
        settings: Table,
        env: Mapping[str, str],
        stored: Stored,
        said: dict[str, Route | None],
        fixed: Collection[str] = (),
    ) -> None:
        self.said = said
        self._settings = settings
        self._env = env
        self._stored = stored
        self._fixed = fixed
        self._url: str = env.get("CROW_BASE_URL") or settings.get("base_url") or ""

    @property
    def providers(self) -> list[str]:
        """The providers that can be routed, by their ids."""
        return [MAIN] if self._url else sorted(known_providers(self._settings))

    @property
    def required(self) -> frozenset[str]:
        """The providers that cannot be switched off."""
        return frozenset({MAIN} if self._url else ())

    @property
    def api_types(self) -> list[str]:
        """What every provider can be asked by."""
        return list(API_TYPES)

    @property
    def secrets(self) -> frozenset[str]:
        """What no output may show of the headers that were given."""
        routes = filter(None, self.said.values())
        told = [pair for route in routes for pair in route.headers.items()]
        secret = [text for name, text in told if is_secret(name.replace("-", "_"))]
        return frozenset(word for text in secret for word in text.split())

    def current(self, provider: str) -> tuple[str, str] | None:
        """The type of API and the URL of a provider; None where it is off, or nobody placed it."""
        if provider in self.said:
            route = self.said[provider]
            return route and (route.api_type, route.url)
        if provider == MAIN:
            return self._type(self._env.get("CROW_WIRE") or self._settings.get("wire")), self._url
        table = self._table(provider)
        try:
            preset = preset_of(provider, table, self._env)
            if preset.cloud:
                from crow.llm.clouds import located

                preset = located(preset, self._env)
        except ModelError:
            return None
        is_own = provider in OWN_TYPES and "wire" not in table
        return provider if is_own else self._type(table.get("wire") or preset.wire), preset.base_url

    def set(self, provider: str, api_type: str, url: str, headers: Mapping[str, Any]) -> None:
        """Route a provider, in the place of whatever was said of it."""
        self._check(provider)
        if provider in self._fixed:
            raise ValueError(f"the administrator says where {provider} is")
        if api_type not in API_TYPES:
            choice = ", ".join(API_TYPES)
            raise ValueError(f"{api_type} is not spoken here with {provider}: choose {choice}")
        if odd := next((name for name, text in headers.items() if not isinstance(text, str)), None):
            raise ValueError(f"the header {odd} is no text")
        route = Route(api_type, url, dict(headers))
        try:
            self._make("any", provider, route)
        except ModelError as error:
            raise ValueError(str(error)) from error
        self.said[provider] = route

    def disable(self, provider: str) -> None:
        """Ask a provider no more; one that there is not is off already."""
        if provider in self.required:
            raise ValueError("all models are at this endpoint: it cannot be switched off")
        if provider in self.providers:
            self.said[provider] = None

    def find(self, model: str | None) -> LLM:
        """The LLM of a name, as `crow.llm.resolve` has it. Raises `ModelError`."""
        name = name_meant(model, self._settings, self._env)
        if name in ("", REHEARSAL) or (provider := self._provider(name)) not in self.said:
            return resolve(model, self._settings, self._env, self._stored)
        route = self.said[provider]
        if route is None:
            raise ModelError(f"{provider} {DISABLED}", kind="unconfigured")
        plain = name if self._url else without_provider(name, self._settings)
        return self._make(plain, provider, route)

    def sources(self) -> Iterator[Source]:
        """The endpoints that can be asked for their models."""
        for source in sources(self._settings, self._env, self._stored):
            if (source.provider or MAIN) not in self.said:
                yield source
        for provider, route in self.said.items():
            if route is not None:
                name = "" if provider == MAIN else provider
                yield Source(name, route.base_url, headers=route.headers)

    def _make(self, name: str, provider: str, route: Route) -> LLM:
        usual = PRESETS.get(provider) or Preset("")
        preset = replace(usual, base_url=route.base_url, urls=None, key_header="", cloud="")
        table = self._table(provider)
        models: dict[str, Table] = {
            model: {**told, "wire": ""} for model, told in table.get("models", {}).items()
        }
        table = {**table, "headers": route.headers, "query": None, "models": models}
        named = "" if provider == MAIN else provider
        place = ModelEndpoint(named, preset, Key(), table, route.wire, moved=True)
        return make_model(name, place, {**self._settings, "headers": {}}, self._env)

    def _provider(self, name: str) -> str:
        return MAIN if self._url else provider_of(name, self._settings, self._env)

    def _table(self, provider: str) -> Table:
        return self._settings.get("providers", {}).get(provider, {})

    def _check(self, provider: str) -> None:
        if provider not in self.providers:
            near = nearest(provider, self.providers, 0.5)
            hint = f": do you mean {near}?" if near else f": choose {', '.join(self.providers)}"
            raise ValueError(f"there is no provider {provider}{hint}")

    def _type(self, wire: str | None) -> str:
        """What the protocol calls a wire; one of OpenAI's is its API."""
        types = {wire: api_type for api_type, wire in API_TYPES.items()}
        return "openai" if wire in (None, "", "responses") else types[wire]
