"""The options for signing in to a server: the table ``oauth`` of its description."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field
from ipaddress import ip_address
from socket import inet_aton
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from crow.dataclasses import frozen

Grant = Literal["authorization_code", "client_credentials", "identity_assertion"]
GRANTS: tuple[Grant, ...] = ("authorization_code", "client_credentials", "identity_assertion")
TEXTS = {
    "clientId": "client_id",
    "clientSecret": "client_secret",
    "authServerMetadataUrl": "metadata_url",
    "clientMetadataUrl": "client_metadata_url",
    "issuer": "issuer",
    "privateKey": "private_key",
    "algorithm": "algorithm",
    "idToken": "id_token",
    "idpClientId": "idp_client_id",
    "idpTokenUrl": "idp_token_url",
}
ADDRESSES = ("authServerMetadataUrl", "clientMetadataUrl", "idpTokenUrl")
"""They are asked, or sent a secret: encrypted, but on this machine."""


@frozen
class OAuth:
    """The way to sign in to a server; with none of it all is found out, and the client registered.

    ``client_id`` and ``client_secret`` are those of a client that is registered already, which
    belongs to ``issuer`` where that is said. ``client_metadata_url`` is where a document describes
    the client. ``metadata_url`` stands in the place of the discovery of the authorization server.
    ``private_key`` (PEM) signs for a client that is a machine, with ``algorithm``; ``id_token``
    and the rest are for a company's own sign-in.
    """

    grant: Grant = "authorization_code"
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    callback_port: int = 0
    metadata_url: str = ""
    client_metadata_url: str = ""
    scopes: str = ""
    issuer: str = ""
    private_key: str = field(default="", repr=False)
    algorithm: str = ""
    id_token: str = field(default="", repr=False)
    idp_client_id: str = ""
    idp_token_url: str = ""

    @property
    def addresses(self) -> tuple[str, ...]:
        """Whom the settings name."""
        return (self.metadata_url, self.issuer, self.idp_token_url)

    @property
    def is_machine(self) -> bool:
        """True where nobody needs to be asked."""
        return self.grant != "authorization_code"


def oauth_of(table: object, filled: Callable[[str], str]) -> OAuth:
    """The table; ``filled`` puts variables into texts. Raises ``ValueError``."""
    if not isinstance(table, Mapping):
        raise ValueError("'oauth' must be a table")  # noqa: TRY004 - what is wrong is a setting
    told = cast("Mapping[str, Any]", table)
    texts = {own: _text(told, name, filled) for name, own in TEXTS.items() if name in told}
    for name in ADDRESSES:
        _refuse_open(name, texts.get(TEXTS[name], ""))
    grant = told.get("grantType", GRANTS[0])
    if grant not in GRANTS:
        raise ValueError(f"'oauth.grantType' must be one of {', '.join(GRANTS)}")
    return OAuth(grant, scopes=_scopes(told), callback_port=_port(told), **texts)


def _text(told: Mapping[str, Any], name: str, filled: Callable[[str], str]) -> str:
    value = told[name]
    if not isinstance(value, str):
        raise ValueError(f"'oauth.{name}' must be text")  # noqa: TRY004
    return filled(value)


def _refuse_open(name: str, address: str) -> None:
    parts = urlsplit(address)
    if address and not (parts.scheme == "https" or is_loopback(address)):
        raise ValueError(f"'oauth.{name}' must begin with https://")


def is_loopback(address: str) -> bool:
    """True for an address of this machine, which nobody else can listen to."""
    parts = urlsplit(address)
    return parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost")


def is_inside(host: str) -> bool:
    """True for an address of this machine, or of a network that is not the web's, in numbers."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    with suppress(ValueError):
        return not ip_address(host.strip("[]")).is_global
    with suppress(OSError):  # other ways to write one: 127.1, 0x7f000001
        return not ip_address(inet_aton(host)).is_global
    return False


def _scopes(told: Mapping[str, Any]) -> str:
    value: object = told.get("scopes") or ""
    listed = value.split() if isinstance(value, str) else value
    texts = cast("list[object]", listed) if isinstance(listed, list) else [None]
    if not all(isinstance(each, str) for each in texts):
        raise ValueError("'oauth.scopes' must be text, or a list of texts")
    return " ".join(map(str, texts))


def _port(told: Mapping[str, Any]) -> int:
    value = told.get("callbackPort") or 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 65536:
        raise ValueError("'oauth.callbackPort' must be the number of a port")
    return value
