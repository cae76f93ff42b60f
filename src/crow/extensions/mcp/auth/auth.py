"""Requests with a token: taken up, renewed early, and got by signing in where somebody is there.

The library's own way holds a lock while a request is under way and knows of one process only; here
a request with a token that is good goes out at once, and one process renews for all.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Any

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.shared.auth import OAuthMetadata

from crow.extensions.mcp.auth import challenge
from crow.extensions.mcp.auth.credential_store import key_of
from crow.extensions.mcp.auth.options import OAuth, is_inside, is_loopback
from crow.extensions.mcp.auth.provider import REFUSED, ClientRefused, Provider, machine_of
from crow.extensions.mcp.auth.sign_in import SignIn, SignInNeeded, needed
from crow.extensions.mcp.auth.storage import Storage
from crow.extensions.mcp.failure import without_secrets
from crow.extensions.mcp.web import bounded_client

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from crow.extensions.mcp.description import Description
    from crow.extensions.mcp.failure import Failure
    from crow.extensions.mcp.owner import Owner

NOBODY = "http://127.0.0.1/callback"
"""Where nobody is sent: a client is not registered with it."""
PATH = "/callback"
_QUOTED = re.compile(
    r"\s*\[type=\w+, input_value=.*\](\s*For further information visit \S+)?", re.DOTALL
)
"""What the library's errors quote of an answer, in which a token can be."""
UNAVAILABLE = "the authorization server does not answer as it should; try again later"


class Auth(httpx2.Auth):
    """Gives requests to one server a token. ``person`` is who can be asked now, if anybody can."""

    def __init__(
        self,
        described: Description,
        storage: Storage,
        person: Callable[[], SignIn | None],
        client: Callable[[], AbstractAsyncContextManager[httpx2.AsyncClient]],
        failure: Failure,
    ) -> None:
        self._name = described.name
        self._url = described.url
        self._told = described.oauth or OAuth()
        self._is_old = described.transport == "sse"
        self._failure = failure
        self._storage = storage
        self._person = person
        self._client = client
        self._turn = asyncio.Lock()
        self._failed: tuple[str, str] | None = None
        quiet = logging.getLogger("mcp.client.auth.oauth2")
        quiet.setLevel(logging.CRITICAL + 1)  # it prints tracebacks of what a line is said about

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request; once more, with another token, where the server wants that."""
        await self._storage.ready()
        used = self._storage.token
        why = await self._attempt(self._renew, "") if self._storage.is_late else ""
        response = yield self._with_token(request)
        for step in (self._renew, self._sign_in):
            if not challenge.is_one(response):
                return
            used = request.headers.get("authorization", "").removeprefix("Bearer ")
            why = await self._attempt(step, used, request, response)
            if self._storage.token != used and self._storage.token:
                response = yield self._with_token(request)
        if challenge.is_one(response) and why:
            challenge.explain(response, why)
            if self._is_old:  # where nobody reads that
                self._failure.say(why)

    def _with_token(self, request: httpx2.Request) -> httpx2.Request:
        if self._storage.token:
            request.headers["authorization"] = f"Bearer {self._storage.token}"
        return request

    async def _attempt(self, step: Callable[..., Any], used: str, *args: Any) -> str:
        """Try to come by another token; why that failed, in a line."""
        async with self._turn:
            if self._storage.token != used and used:
                return ""  # somebody else was here first
            if self._failed and self._failed[0] == used:
                return self._failed[1]  # once is enough, however many requests there are
            try:
                await step(used, *args)
            except SignInNeeded as error:
                why = str(error)
            except (OAuthFlowError, httpx2.HTTPError, OSError, ValueError) as error:
                told = _QUOTED.sub("", str(error))
                text = " ".join(without_secrets(told).split())[:500]
                why = f"signing in failed: {text or type(error).__name__}"
            else:
                return ""
            self._failed = (used, why)
            return why

    # renewing

    async def _renew(self, used: str, *_: Any) -> None:
        """Renew a token that is refused or about to end, unless somebody else has done it."""
        if self._told.is_machine or not self._storage.can_renew:
            return
        async with self._storage.alone():
            await self._storage.load()
            if self._storage.token != used and not self._storage.is_late:
                return
            async with self._client() as client:
                provider = Provider(self._url, self._storage, self._told, NOBODY, None)
                self._storage.context = provider.context
                status = await provider.renew(self._sending(client))
        if status >= 500 or status == 429:
            raise OAuthFlowError(UNAVAILABLE)
        if status and status != 200:
            await self._storage.forget_tokens()

    # signing in

    async def _sign_in(self, used: str, request: httpx2.Request, response: httpx2.Response) -> None:
        if self._told.scopes and not challenge.wants_more(response):
            challenge.want(response, self._told.scopes)
        async with self._client() as client:
            send = self._sending(client)
            if self._told.is_machine:
                machine = machine_of(self._url, self._storage, self._told, send)
                self._storage.context = getattr(machine, "context", None)
                await self._drive(machine, request, response, send)
                return
            person = self._person()
            if person is None:
                raise SignInNeeded(needed(self._name))
            try:
                await self._with_person(person, request, response, send)
            finally:
                await person.close()

    async def _with_person(
        self, person: SignIn, request: httpx2.Request, response: httpx2.Response, send: Any
    ) -> None:
        try:
            await self._as_client(person, request, response, send)
        except OAuthFlowError as error:
            is_refused = any(word in str(error) for word in REFUSED)
            if not (isinstance(error, ClientRefused) or is_refused) or self._told.client_id:
                raise
            await self._storage.forget_client()
            await self._as_client(person, request, response, send)

    async def _as_client(
        self, person: SignIn, request: httpx2.Request, response: httpx2.Response, send: Any
    ) -> None:
        """Sign in as the client that is known, else as a new one."""
        told = self._told
        if told.client_id:  # as people have told others of it: http://localhost:PORT/callback
            redirect = await person.open(told.callback_port, "localhost", PATH)
        else:
            redirect = await self._opened(person)
            await self._storage.registered_for(redirect)
        provider = Provider(self._url, self._storage, told, redirect, person)
        self._storage.context = provider.context
        if told.metadata_url:
            found = await send(httpx2.Request("GET", told.metadata_url))
            provider.pinned = OAuthMetadata.model_validate_json(found.content)
        await self._drive(provider, request, response, send)

    async def _opened(self, person: SignIn) -> str:
        """Listen where the client is registered for, else anywhere."""
        host, wanted = "127.0.0.1", self._told.callback_port
        try:
            return await person.open(wanted or self._storage.port, host, PATH)
        except OSError:
            if wanted:
                raise
            return await person.open(0, host, PATH)

    async def _drive(
        self, provider: Any, request: httpx2.Request, response: httpx2.Response, send: Any
    ) -> None:
        """Let the library ask what it wants to, until it would send the request again."""
        flow = provider.async_auth_flow(request)
        try:
            outgoing = await anext(flow)
            if outgoing is not request:
                raise OAuthFlowError("there is no way to renew this")
            outgoing = await flow.asend(response)
            while outgoing is not request:
                outgoing = await flow.asend(await self._answer(provider, outgoing, send))
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()

    async def _answer(self, provider: Any, outgoing: httpx2.Request, send: Any) -> httpx2.Response:
        pinned = getattr(provider, "pinned", None)
        if pinned is not None and provider.finds(str(outgoing.url)):
            body = pinned.model_dump_json(exclude_none=True)
            return httpx2.Response(200, content=body, request=outgoing)
        is_lost = self._told.client_id and getattr(provider, "context", None) is not None
        if is_lost and provider.context.client_info is None:
            raise OAuthFlowError("the client of the settings belongs to another issuer")
        return await send(outgoing)

    def _sending(self, client: httpx2.AsyncClient) -> Any:
        told = self._told
        named = {httpx2.URL(url).host for url in (self._url, *told.addresses)}

        async def send(request: httpx2.Request) -> httpx2.Response:
            host = request.url.host
            if not _is_safe(str(request.url), self._url):
                raise OAuthFlowError(f"{host} would be asked unencrypted")
            if host not in named and not is_loopback(self._url) and is_inside(host):
                raise OAuthFlowError(f"{host} is no place to sign in for a server elsewhere")
            return await client.send(request)

        return send


def _is_safe(url: str, server: str) -> bool:
    """True where what is sent stays secret."""
    if is_loopback(server):
        return is_loopback(url) or url.startswith("https:")
    return url.startswith("https:") or (
        server.startswith("http:") and httpx2.URL(url).host == httpx2.URL(server).host
    )


def auth_of(owner: Owner, failure: Failure) -> Auth | None:
    """Who gives a server's requests a token; None where nobody has to sign in."""
    described = owner.description
    if described.oauth is None:
        return None

    def client() -> AbstractAsyncContextManager[httpx2.AsyncClient]:
        return bounded_client(owner.limits.connect)

    key = key_of(described.name, described.url)
    storage = Storage(owner.vault, key, owner.learn)
    return Auth(described, storage, owner.person, client, failure)
