"""The guard of the server: it lets in whoever knows the token, and no page that knows the port."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from crow.acp.listen.address import ip_of
from crow.core.support.frozen import frozen

if TYPE_CHECKING:
    from crow.acp.listen.node import Node

LOCAL = "localhost"
BEARER = "bearer"


@frozen
class Objection:
    """The reason why a request is refused: an HTTP status, and a line for whoever sent it."""

    status: int
    text: str


class Guard:
    """Judges requests by their headers and their query.

    ``host`` is the name or address that the server listens on: beside IP addresses and
    ``localhost`` it is the only one that a request may be addressed to, because a page of a foreign
    name that was made to lead here (DNS rebinding) carries that name. Where there are other
    nodes (``node``), they may come under the name that they know, and show a proof of the token.
    """

    def __init__(self, token: str, host: str, node: Node | None = None) -> None:
        self._token = token.encode()
        self._hosts = {LOCAL, host.lower(), *([node.host] if node else [])}
        self._proof = node.proof(node.url).encode() if node else b""

    def objection(self, headers: Mapping[str, str], query: Mapping[str, str]) -> Objection | None:
        """What is wrong with a request; the names of ``headers`` are in lower case."""
        host = headers.get("host", "")
        if not self._is_ours(host):
            return Objection(403, "this server is not known under the name in the Host header")
        origin = headers.get("origin")
        if origin is not None and not is_same(origin, host):
            return Objection(403, "web pages of another origin may not speak to this server")
        asked = query.get("token", "")
        if not (self._is_known(headers, asked) or self.is_node(headers)):
            return Objection(401, "the token is missing or wrong: Authorization: Bearer TOKEN")
        return None

    def is_node(self, headers: Mapping[str, str]) -> bool:
        """True where another node asks, for a client of its own."""
        return bool(self._proof) and hmac.compare_digest(shown(headers), self._proof)

    def _is_ours(self, host: str) -> bool:
        name = name_of(host)
        return name in self._hosts or ip_of(name) is not None

    def _is_known(self, headers: Mapping[str, str], asked: str) -> bool:
        """Compares in constant time, both where the token may stand."""
        in_header = hmac.compare_digest(shown(headers), self._token)
        in_query = hmac.compare_digest(asked.encode(), self._token)
        return in_header or in_query


def shown(headers: Mapping[str, str]) -> bytes:
    """The credentials in the header; empty where there are none."""
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    return credentials.strip().encode() if scheme.lower() == BEARER else b""


def name_of(host: str) -> str:
    """The name in a ``Host`` header, in lower case, without its port; "" for a wrong one."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def is_same(origin: str, host: str) -> bool:
    """True where a page came from this very server."""
    scheme, _, rest = origin.partition("://")
    return scheme in ("http", "https") and rest.lower() == host.lower()
