"""Credentials, as a client asks about them: whether there are any, and to forget them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from crow.acp.connection import Connection
from crow.acp.errors import invalid, unauthenticated, unknown_method
from crow.acp.initialize import AUTH_METHOD, AgentCapabilities
from crow.acp.jsonrpc import Message
from crow.core.agent import Agent
from crow.core.errors import ModelError
from crow.core.support.validation import implements
from crow.ports.models import KeyHolder

if TYPE_CHECKING:
    import crow.acp.outgoing as v1

STATUS_UPDATE = "auth/status_update"
State = Literal["authenticated", "unauthenticated", "not_required", "unknown"]


class Authentication:
    """The keys that an agent's model is asked with. Methods raise `Refusal`."""

    def __init__(self, agent: Agent, offer: AgentCapabilities, connection: Connection) -> None:
        self._agent = agent
        self._offer = offer
        self._connection = connection
        self._told: v1.AuthStatusResponse | None = None

    @property
    def stores_keys(self) -> bool:
        """True where a command stores keys, which can be removed again."""
        return bool(self._offer.login)

    async def authenticate(self, params: Message) -> v1.AuthenticateResponse:
        """See whether there are credentials now."""
        if params["methodId"] != AUTH_METHOD["id"]:
            raise invalid(f"there is no method {params['methodId']!r} to be used here")
        try:
            _name = self._agent.llm.model
        except ModelError as error:
            raise unauthenticated(str(error)) from error
        return {}

    async def status(self, params: Message) -> v1.AuthStatusResponse:
        """Say whether a user has to sign in before a model can be asked; no model is asked."""
        self._told = self._status()
        return self._told

    def tell_change(self) -> None:
        """Tell a client that has asked for the status once when it is another one by now."""
        if self._told is not None and (status := self._status()) != self._told:
            self._told = status
            self._connection.notify(STATUS_UPDATE, status)

    def _status(self) -> v1.AuthStatusResponse:
        told: v1.AuthStatusResponse = {"state": self._state()}
        if self.stores_keys:
            told["accounts"] = list(self._accounts())
        return told

    def _accounts(self) -> Iterator[v1.AuthAccount]:
        """The keys that there are; in use is that of the provider whose model is asked."""
        from crow.llm.credentials import places

        asked = self._provider()
        for name, variable in places(os.environ).items():
            label = f"{name} API key ({variable})" if variable else f"{name} API key"
            yield {"label": label, "active": name == asked}

    def _provider(self) -> str:
        """The provider of the model that is asked without a choice; empty where there is none."""
        from crow.acp.config_options import listed_name
        from crow.llm.presets import provider_meant

        try:
            name = listed_name(self._agent, None)
        except ModelError:
            return ""
        before, slash, _ = name.partition("/")
        return before if slash else provider_meant(name) or ""

    async def logout(self, params: Message) -> v1.LogoutResponse:
        """Remove the stored keys; those of the environment are not ours to remove."""
        if not self.stores_keys:
            raise unknown_method(details="this agent stores no keys")
        from crow.llm.credentials import forget, providers

        for provider in providers():
            forget(provider)
        if implements(self._agent.llm, KeyHolder):
            await self._agent.llm.forget()
        return {}

    def _state(self) -> State:
        try:
            name = self._agent.llm.model
        except ModelError as error:
            return "unauthenticated" if error.kind == "unconfigured" else "unknown"
        return "not_required" if needs_no_key(name) else "authenticated"


def needs_no_key(model: str) -> bool:
    """True for the rehearsal, and for models of servers on this machine."""
    from crow.llm.model_names import REHEARSAL
    from crow.llm.presets import PRESETS

    preset = PRESETS.get(model.partition("/")[0])
    return model == REHEARSAL or (preset is not None and preset.is_local)
