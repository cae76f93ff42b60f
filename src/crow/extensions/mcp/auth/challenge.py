"""The challenge in a server's response: it wants a sign-in, or more than that was for."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from http import HTTPStatus

import httpx2

NAME = "www-authenticate"
_SCOPE = re.compile(r'\bscope=(?:"[^"]*"|[^\s,]*)', re.IGNORECASE)


def is_one(response: httpx2.Response) -> bool:
    """True where a server wants another token, or one at all."""
    return response.status_code == HTTPStatus.UNAUTHORIZED or wants_more(response)


def wants_more(response: httpx2.Response) -> bool:
    """True where the token is fine, but not for this."""
    told = response.headers.get(NAME, "")
    return response.status_code == HTTPStatus.FORBIDDEN and "insufficient_scope" in told


def want(response: httpx2.Response, scopes: str) -> None:
    """Let a challenge want these scopes, which the settings name."""
    told = response.headers.get(NAME) or "Bearer"
    if _SCOPE.search(told):
        response.headers[NAME] = _SCOPE.sub(lambda _: f'scope="{scopes}"', told)
    else:
        joint = ", " if "=" in told else " "
        response.headers[NAME] = f'{told}{joint}scope="{scopes}"'


def explain(response: httpx2.Response, why: str) -> None:
    """Put an error for a person in the place of what a response says; it is not read yet."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32603, "message": why}}
    body = json.dumps(error).encode()
    response.headers["content-type"] = "application/json"
    response.headers["content-length"] = str(len(body))
    response.stream = Said(body, response.stream)


class Said(httpx2.AsyncByteStream):
    """A body in the place of another one, whose connection is let go."""

    def __init__(self, body: bytes, instead_of: object) -> None:
        self._body = body
        self._other = instead_of

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """All of it."""
        yield self._body

    async def aclose(self) -> None:
        """Let the connection go."""
        if isinstance(self._other, httpx2.AsyncByteStream):
            await self._other.aclose()
