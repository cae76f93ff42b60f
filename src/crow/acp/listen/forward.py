"""Requests of a client over HTTP that reach another node than the one it has connected to.

Where nothing keeps a client to one node, its POSTs and streams come to any of them; which one the
connection is of stands in its id.
"""

from __future__ import annotations

import logging
from base64 import urlsafe_b64decode, urlsafe_b64encode
from ssl import create_default_context
from typing import TYPE_CHECKING

from starlette.responses import StreamingResponse

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from httpx2 import AsyncClient, Response
    from starlette.requests import Request

    from crow.acp.listen.node import Node

logger = logging.getLogger(__name__)

SENT = ("content-type", "accept", "acp-connection-id", "acp-session-id", "last-event-id")
ANSWERED = ("content-type", "cache-control")
PATIENCE = 5.0
"""Seconds for a node to be reached in; a stream may be silent for as long as it likes."""


def home_of(connection_id: str, node: Node) -> str | None:
    """The URL of the node that a connection is of; None for this node, and for nonsense."""
    try:
        url = urlsafe_b64decode(connection_id.partition(".")[2].encode()).decode()
    except ValueError:
        return None
    return url if url.startswith(("http://", "https://")) and url != node.url else None


def with_home(connection_id: str, node: Node | None) -> str:
    """A connection's id that tells other nodes which one it is of."""
    if node is None:
        return connection_id
    return f"{connection_id}.{urlsafe_b64encode(node.url.encode()).decode()}"


class Forwarding:
    """Passes requests on to other nodes; the connections to them are kept for the next ones."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._client: AsyncClient | None = None

    async def answer(self, request: Request, url: str, body: bytes) -> StreamingResponse | None:
        """What the node at a URL answers, as it comes; None where that cannot be reached."""
        from httpx2 import AsyncClient, HTTPError, InvalidURL, Limits, Timeout

        if self._client is None:
            timeout = Timeout(None, connect=PATIENCE)
            limits = Limits(max_connections=None, max_keepalive_connections=32)
            trusted = create_default_context()  # as the system, or SSL_CERT_FILE, has it
            self._client = AsyncClient(
                timeout=timeout, limits=limits, verify=trusted, trust_env=False
            )
        headers = {name: request.headers[name] for name in SENT if name in request.headers}
        headers["authorization"] = f"Bearer {self._node.proof(url)}"
        try:
            asked = self._client.build_request(request.method, url, headers=headers, content=body)
            answer = await self._client.send(asked, stream=True)
        except (HTTPError, InvalidURL) as error:
            logger.warning("the node at %s cannot be reached: %s", url, error)
            return None
        told = {name: answer.headers[name] for name in ANSWERED if name in answer.headers}
        return StreamingResponse(pieces(answer), answer.status_code, told)


async def pieces(answer: Response) -> AsyncGenerator[bytes]:
    """The body of an answer, as it comes; what breaks off there breaks off here."""
    from httpx2 import HTTPError

    try:
        async for piece in answer.aiter_raw():
            yield piece
    except HTTPError:
        return
    finally:
        await answer.aclose()
