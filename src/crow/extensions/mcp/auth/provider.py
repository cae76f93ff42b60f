"""The library's ways of signing in, with what the settings say of them; imported with it."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.client.auth.utils import build_oauth_authorization_server_metadata_discovery_urls
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
)
from mcp.shared.exceptions import MCPDeprecationWarning
from pydantic import AnyUrl

from crow.extensions.mcp.failure import plain

if TYPE_CHECKING:
    from crow.extensions.mcp.auth.options import OAuth
    from crow.extensions.mcp.auth.sign_in import SignIn
    from crow.extensions.mcp.auth.storage import Storage

Send = Callable[[httpx2.Request], Awaitable[httpx2.Response]]
REFUSED = ("invalid_client", "unauthorized_client")
"""What is said of a client that is not known any more."""
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"  # noqa: S105 - a name
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


class ClientRefused(OAuthFlowError):  # noqa: N818
    """The authorization server does not know the client any more."""


class Provider(OAuthClientProvider):
    """Signs a person in, or renews what somebody has signed in for."""

    def __init__(
        self, url: str, storage: Storage, told: OAuth, redirect: str, person: SignIn | None
    ):
        metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(redirect)], client_name="Crow")
        document = told.client_metadata_url or None
        super().__init__(url, metadata, storage, self._visit, self._redirected, document)
        self._storage = storage
        self._told = told
        self._person = person
        self.pinned: OAuthMetadata | None = None

    async def _initialize(self) -> None:
        """Take up what is kept, with what the library forgets: the end, and where to renew."""
        await super()._initialize()
        context, storage = self.context, self._storage
        context.client_info = self._registered() or context.client_info
        context.token_expiry_time = storage.expires_at
        context.oauth_metadata = storage.authorization_server
        context.protected_resource_metadata = storage.resource
        if self.context.protected_resource_metadata is not None:
            context.auth_server_url = storage.issuer

    def _registered(self) -> OAuthClientInformationFull | None:
        """The client that the settings name."""
        told = self._told
        if not told.client_id:
            return None
        return OAuthClientInformationFull(
            client_id=told.client_id,
            client_secret=told.client_secret or None,
            redirect_uris=self.context.client_metadata.redirect_uris,
            token_endpoint_auth_method="client_secret_basic" if told.client_secret else "none",
            issuer=told.issuer or None,
        )

    async def renew(self, send: Send) -> int:
        """Renew the tokens; the HTTP status of the answer, 0 where there is no way to."""
        await self._initialize()
        if not self.context.can_refresh_token():
            return 0
        answer = await send(await self._refresh_token())
        if answer.status_code < 500 and answer.status_code != 429:
            await self._handle_refresh_response(answer)
        return answer.status_code

    def finds(self, url: str) -> bool:
        """True for an address where the authorization server describes itself."""
        context = self.context
        urls = build_oauth_authorization_server_metadata_discovery_urls(
            context.auth_server_url, context.server_url
        )
        return url in urls

    def _expected_issuer(self) -> str:
        return str(self.pinned.issuer) if self.pinned else super()._expected_issuer()

    def _select_authorization_server(self, advertised: list[str]) -> str:
        wanted = str(self.pinned.issuer) if self.pinned else self._told.issuer
        return next((each for each in advertised if each == wanted), advertised[0])

    async def _perform_authorization(self) -> httpx2.Request:
        context = self.context
        metadata, client = context.oauth_metadata, context.client_info
        methods = (metadata and metadata.token_endpoint_auth_methods_supported) or []
        if self._told.client_secret and client and methods and "client_secret_basic" not in methods:
            client.token_endpoint_auth_method = "client_secret_post"  # noqa: S105
        if metadata and "S256" not in (metadata.code_challenge_methods_supported or ()):
            raise OAuthFlowError("the authorization server does not protect codes (PKCE with S256)")
        await self._storage.doubt()
        return await super()._perform_authorization()

    async def _visit(self, url: str) -> None:
        assert self._person is not None
        await self._person.visit(url)

    async def _redirected(self) -> AuthorizationCodeResult:
        assert self._person is not None
        found = await self._person.redirected()
        if found.error:
            metadata = self.context.oauth_metadata
            issuer = str(metadata.issuer) if metadata else None
            promised = metadata and metadata.authorization_response_iss_parameter_supported
            if found.iss != issuer and (found.iss is not None or promised):
                raise OAuthFlowError("the answer is not one of the authorization server")
            if found.error in REFUSED:
                raise ClientRefused(found.error)
            raise OAuthFlowError(plain(f"{found.error} {found.description}").strip()[:300])
        return AuthorizationCodeResult(code=found.code, state=found.state, iss=found.iss)


def machine_of(
    url: str, storage: Storage, told: OAuth, send: Send
) -> OAuthClientProvider | IdentityAssertionOAuthProvider:
    """Who signs in where nobody has to be asked. Raises ``ValueError``."""
    issuer, scope = told.issuer or None, told.scopes or None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)  # of no issuer: it is discovered
        if told.grant == "identity_assertion":
            return IdentityAssertionOAuthProvider(
                url,
                storage,
                told.client_id,
                told.client_secret,
                told.issuer,
                assertion_provider=Exchange(told, send),
                scope=scope,
                token_endpoint_auth_method="client_secret_basic",  # noqa: S106
            )
        if told.private_key:
            signed = SignedJWTParameters(
                issuer=told.client_id,
                subject=told.client_id,
                signing_key=told.private_key,
                signing_algorithm=told.algorithm or "RS256",
            )
            sign = signed.create_assertion_provider()
            return PrivateKeyJWTOAuthProvider(url, storage, told.client_id, sign, scope, issuer)
        secret = told.client_secret
        return ClientCredentialsOAuthProvider(
            url, storage, told.client_id, secret, scope=scope, issuer=issuer
        )


class Exchange:
    """Gives a company's word for who somebody is, for this server, in exchange for an ID token."""

    def __init__(self, told: OAuth, send: Send) -> None:
        self._told = told
        self._send = send

    async def __call__(self, audience: str, resource: str) -> str:
        told = self._told
        form: dict[str, Any] = {
            "grant_type": EXCHANGE,
            "requested_token_type": ID_JAG,
            "audience": audience,
            "resource": resource,
            "subject_token": told.id_token,
            "subject_token_type": ID_TOKEN,
            "client_id": told.idp_client_id,
        }
        answer = await self._send(httpx2.Request("POST", told.idp_token_url, data=form))
        if answer.status_code != 200:
            text = plain(answer.text)[:200]
            raise OAuthFlowError(f"the identity provider answered {answer.status_code}: {text}")
        token = answer.json().get("access_token")
        if not isinstance(token, str):
            raise OAuthFlowError("the identity provider gave no token")
        return token
