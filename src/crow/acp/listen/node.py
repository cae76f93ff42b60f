"""One server of several that share a store: where the others reach it, and how they know it."""

from __future__ import annotations

import hmac
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from crow.acp.listen.address import AddressError
from crow.core.support.frozen import frozen

if TYPE_CHECKING:
    from crow.acp.listen.address import Address

ANY = ("0.0.0.0", "::")  # noqa: S104 - where no other machine can connect to
LET_GO = "_crow/let_go"
"""What one node asks of another: a session that nobody uses there, for one that wants it."""


@frozen
class Node:
    """A server: the ``token`` that all of them have, and the ``url`` of its endpoint."""

    token: str
    url: str

    @property
    def host(self) -> str:
        """The name or the IP address by which other nodes call it."""
        return urlsplit(self.url).hostname or ""

    def proof(self, url: str) -> str:
        """What shows the node at a URL that it is spoken to by another one.

        It is of use at that URL alone: whoever brings others to ask there does not get the token.
        """
        return hmac.new(self.token.encode(), f"node {url}".encode(), "sha256").hexdigest()


def node_url(given: str | None, real: Address) -> str:
    """The URL that other nodes are told: the one that was given, else where the server listens.

    Raises `AddressError`.
    """
    if given is None:
        return real.url if real.host not in ANY else real.under(socket.gethostname()).url
    parts = urlsplit(given)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
        raise AddressError(f"--node-url wants http://HOST:PORT/acp, or https:, and not {given!r}")
    return given
