"""The token storage of one server, as the library wants it: client, tokens, where to renew."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)

if TYPE_CHECKING:
    from mcp.client.auth.oauth2 import OAuthContext
    from pydantic import BaseModel

    from crow.extensions.mcp.auth.credential_store import CredentialStore, Entry

CLIENT, TOKENS, EXPIRES = "client", "tokens", "expires_at"
ISSUER, SERVER, RESOURCE, DOUBTED = "issuer", "authorization_server", "resource", "doubted"
EARLY = 30.0
"""Seconds before its end that a token is renewed."""


class Storage:
    """An entry of the vault, which counts for all that is sent.

    ``learn`` hears of every secret that it holds. ``context`` is the library's, as long as it
    signs in.
    """

    def __init__(self, vault: CredentialStore, key: str, learn: Callable[[str], None]) -> None:
        self._vault = vault
        self._key = key
        self._entry: Entry = {}
        self._is_loaded = False
        self._learn = learn
        self.context: OAuthContext | None = None

    async def ready(self) -> None:
        """Read what there is, once."""
        if not self._is_loaded:
            await self.load()

    async def load(self) -> None:
        """Read what there is, by whomever it was written; what makes no sense is not there."""
        self._entry = await asyncio.to_thread(self._vault.load, self._key)
        self._is_loaded = True
        try:
            _ = await self.get_tokens(), await self.get_client_info()
            _ = self.authorization_server, self.resource
        except ValueError:
            self._entry = {}
        self._tell()

    def alone(self) -> AbstractAsyncContextManager[None]:
        """No other process renews meanwhile."""
        return self._vault.alone(self._key)

    @property
    def token(self) -> str:
        """The token for requests; empty where there is none."""
        return self._entry.get(TOKENS, {}).get("access_token", "")

    @property
    def expires_at(self) -> float | None:
        """When that ends, if it is known."""
        return self._entry.get(EXPIRES)

    @property
    def is_late(self) -> bool:
        """True where it has ended, or is about to."""
        return bool(self.token) and self.expires_at is not None and time.time() > self.expires_at

    @property
    def can_renew(self) -> bool:
        """True where it can be renewed without anybody."""
        return bool(self._entry.get(TOKENS, {}).get("refresh_token"))

    @property
    def port(self) -> int:
        """The port that the client is registered with; 0 for any."""
        uris = self._entry.get(CLIENT, {}).get("redirect_uris") or [""]
        return urlsplit(uris[0]).port or 0

    @property
    def issuer(self) -> str | None:
        """Who gives tokens."""
        return self._entry.get(ISSUER)

    @property
    def authorization_server(self) -> OAuthMetadata | None:
        """What was found out about who gives tokens."""
        told = self._entry.get(SERVER)
        return None if told is None else OAuthMetadata.model_validate(told)

    @property
    def resource(self) -> ProtectedResourceMetadata | None:
        """What was found out about the server."""
        told = self._entry.get(RESOURCE)
        return None if told is None else ProtectedResourceMetadata.model_validate(told)

    # as the library wants it

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens."""
        told = self._entry.get(TOKENS)
        return None if told is None else OAuthToken.model_validate(told)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep tokens, with when they end and where they are renewed, before they are used.

        Raises ``ValueError`` for one that no request can have.
        """
        if not (tokens.access_token.isascii() and tokens.access_token.isprintable()):
            raise ValueError("the token that was given cannot be sent")
        found: list[tuple[str, BaseModel | None]] = [(TOKENS, tokens)]
        for name in (EXPIRES, DOUBTED):
            self._entry.pop(name, None)
        if tokens.expires_in:
            early = min(EARLY, tokens.expires_in / 10)
            self._entry[EXPIRES] = time.time() + tokens.expires_in - early
        if self.context is not None:
            found += [
                (SERVER, self.context.oauth_metadata),
                (RESOURCE, self.context.protected_resource_metadata),
                (CLIENT, self.context.client_info),
            ]
            self._entry[ISSUER] = self.context.auth_server_url
        self._entry |= {name: _plain(each) for name, each in found if each is not None}
        await self._save()

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """The client, as long as it is valid."""
        told = self._entry.get(CLIENT)
        client = None if told is None else OAuthClientInformationFull.model_validate(told)
        ends = client and client.client_secret_expires_at
        return None if ends and ends <= time.time() else client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep a client; the tokens of another one are of no use to it."""
        self._entry = {CLIENT: _plain(client_info)}
        await self._save()

    # what it leaves to others

    async def registered_for(self, redirect: str) -> None:
        """Know no client of another address, nor one with which nobody got to the end."""
        known = self._entry.get(CLIENT, {}).get("redirect_uris") or [redirect]
        if redirect not in known or self._entry.get(DOUBTED):
            await self.forget_client()

    async def doubt(self) -> None:
        """Whether the client is of use is known when there are tokens."""
        self._entry[DOUBTED] = True
        await self._save()

    async def forget_client(self) -> None:
        """Know nothing any more."""
        self._entry = {}
        await self._save()

    async def forget_tokens(self) -> None:
        """Keep the client alone."""
        self._entry = {name: each for name, each in self._entry.items() if name == CLIENT}
        await self._save()

    async def _save(self) -> None:
        self._tell()
        await asyncio.to_thread(self._vault.store, self._key, dict(self._entry))

    def _tell(self) -> None:
        tokens, client = self._entry.get(TOKENS, {}), self._entry.get(CLIENT, {})
        told = [tokens.get(name) for name in ("access_token", "refresh_token", "id_token")]
        for secret in (*told, client.get("client_secret"), client.get("registration_access_token")):
            if secret:
                self._learn(secret)


def _plain(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", exclude_none=True)
