"""A server that wants a sign-in, with the library's own authorization server in the same process.

Leaves a trace of what is asked of it. A line of standard input changes what it does: ``expire`` ends
the tokens that there are, ``forget`` the clients, ``refuse`` the tokens that renew others, ``break``
has renewing fail for a while.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl

LIFE = int(os.environ.get("LIFE", "3600"))


def note(text: str) -> None:
    """Leave a trace for the test."""
    with Path(os.environ["TRACE"]).open("a") as file:
        file.write(f"{text}\n")


class Provider:
    """Gives tokens to whoever asks; each that renews another one is good once."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.tokens: dict[str, AccessToken] = {}
        self.renewing: dict[str, RefreshToken] = {}
        self.is_broken = False

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        note("registered")
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: Any, params: AuthorizationParams) -> str:
        note(f"authorized for {params.resource}")
        code = AuthorizationCode(
            code=secrets.token_urlsafe(24),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: Any, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client: Any, authorization_code: Any) -> OAuthToken:
        code = self.codes.pop(authorization_code.code)
        return self.given(client.client_id, code.scopes, code.resource)

    async def load_refresh_token(self, client: Any, refresh_token: str) -> RefreshToken | None:
        return self.renewing.get(refresh_token)

    async def exchange_refresh_token(
        self, client: Any, refresh_token: Any, scopes: Any
    ) -> OAuthToken:
        if self.is_broken:
            raise RuntimeError("broken")
        if self.renewing.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        note("renewed")
        return self.given(client.client_id, refresh_token.scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.tokens.get(token)

    async def revoke_token(self, token: Any) -> None:
        self.tokens.pop(token.token, None)

    async def exchange_identity_assertion(self, client: Any, params: Any) -> OAuthToken:
        raise NotImplementedError

    def given(self, client: str, scopes: list[str], resource: str | None) -> OAuthToken:
        """Two tokens that nobody may ever see."""
        access, renewing = (f"SECRET-{kind}-{secrets.token_hex(8)}" for kind in ("access", "renew"))
        more: dict[str, Any] = {"client_id": client, "scopes": scopes, "resource": resource}
        self.tokens[access] = AccessToken(token=access, expires_at=int(time.time()) + 3600, **more)
        self.renewing[renewing] = RefreshToken(token=renewing, **more)
        return OAuthToken(
            access_token=access, refresh_token=renewing, expires_in=LIFE, scope=" ".join(scopes)
        )

    def obey(self) -> None:
        """Do what the test says."""
        for line in sys.stdin:
            match line.strip():
                case "expire":
                    self.tokens.clear()
                case "forget":
                    self.clients.clear()
                    self.tokens.clear()
                    self.renewing.clear()
                case "refuse":
                    self.tokens.clear()
                    self.renewing.clear()
                case "break":
                    self.tokens.clear()
                    self.is_broken = True
                case "mend":
                    self.is_broken = False
            print("done", flush=True)


provider = Provider()
listening = socket.create_server(("127.0.0.1", 0))
url = f"http://127.0.0.1:{listening.getsockname()[1]}"
mcp = MCPServer(
    "signed",
    log_level="CRITICAL",
    auth_server_provider=provider,
    auth=AuthSettings(
        issuer_url=AnyHttpUrl(url),
        resource_server_url=AnyHttpUrl(f"{url}/mcp"),
        client_registration_options=ClientRegistrationOptions(
            enabled=True, valid_scopes=["use"], default_scopes=["use"]
        ),
        required_scopes=["use"],
        validate_token_resource=True,
    ),
)


@mcp.tool()
def headers() -> str:
    """Say the secrets that were sent along."""
    return " ".join(provider.tokens)


threading.Thread(target=provider.obey, daemon=True).start()
print(f"{url}/mcp", flush=True)
uvicorn.Server(uvicorn.Config(mcp.streamable_http_app(), log_level="critical")).run([listening])
