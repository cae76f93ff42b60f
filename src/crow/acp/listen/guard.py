"""Who may speak to the server: whoever knows the token; no web page that only knows the port."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from urllib.parse import urlsplit

from crow.acp.listen.address import ip_of
from crow.core.frozen import frozen

LOCAL = "localhost"
BEARER = "bearer"


@frozen
class Objection:
    """Why a request is refused: an HTTP status, and a line for whoever sent it."""

    status: int
    text: str


class Guard:
    """Judges requests by their headers and their query.

    ``host`` is the name or address that the server listens on: beside IP addresses and
    ``localhost`` it is the only one that a request may be addressed to, because a page of a foreign
    name that was made to lead here (DNS rebinding) carries that name.
    """

    def __init__(self, token: str, host: str) -> None:
        self._token = token.encode()
        self._hosts = {LOCAL, host.lower()}

    def objection(self, headers: Mapping[str, str], query: Mapping[str, str]) -> Objection | None:
        """What is wrong with a request; the names of ``headers`` are in lower case."""
        host = headers.get("host", "")
        if not self._is_ours(host):
            return Objection(403, "this server is not known under the name in the Host header")
        origin = headers.get("origin")
        if origin is not None and not is_same(origin, host):
            return Objection(403, "web pages of another origin may not speak to this server")
        if not self._is_known(headers.get("authorization", ""), query.get("token", "")):
            return Objection(401, "the token is missing or wrong: Authorization: Bearer TOKEN")
        return None

    def _is_ours(self, host: str) -> bool:
        name = name_of(host)
        return name in self._hosts or ip_of(name) is not None

    def _is_known(self, authorization: str, asked: str) -> bool:
        """Compares in constant time, both where the token may stand."""
        scheme, _, credentials = authorization.partition(" ")
        sent = credentials.strip() if scheme.lower() == BEARER else ""
        in_header = hmac.compare_digest(sent.encode(), self._token)
        in_query = hmac.compare_digest(asked.encode(), self._token)
        return in_header or in_query


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
