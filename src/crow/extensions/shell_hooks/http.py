"""Hooks that are asked over HTTP: the input is the body, the answer is the output."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from crow.extensions.shell_hooks.output import RawOutput

if TYPE_CHECKING:
    from httpx2 import AsyncClient

LIMIT = 1024 * 1024
VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


class HTTPFailedError(Exception):
    """The request failed, or the answer is none; the text says how."""


class Web:
    """The connections of one session; made when something is first asked."""

    def __init__(self) -> None:
        self._client: AsyncClient | None = None

    async def aclose(self) -> None:
        """Close them."""
        if self._client is not None:
            await self._client.aclose()

    async def ask(self, spec: Mapping[str, Any], body: bytes, env: Mapping[str, str]) -> RawOutput:
        """What a server answers. Raises `HTTPFailedError`."""
        import httpx2

        if self._client is None:
            self._client = httpx2.AsyncClient(timeout=None)  # the caller has one
        headers = {"content-type": "application/json", **headers_of(spec, env)}
        try:
            async with self._client.stream(
                "POST", spec["url"], content=body, headers=headers
            ) as response:
                text = await _text(response.aiter_bytes())
                status = response.status_code
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            raise HTTPFailedError(f"{type(error).__name__}: {error}".rstrip(": ")) from None
        if not 200 <= status < 300:
            raise HTTPFailedError(f"HTTP status {status}")
        text = text.strip()
        if text and not text.startswith("{"):
            raise HTTPFailedError("the answer is no JSON object")
        return RawOutput(0, text)


async def _text(pieces: Any) -> str:
    kept = bytearray()
    async for piece in pieces:
        kept += piece
        if len(kept) > LIMIT:  # what is cut off there is no object any more
            break
    return kept.decode("utf-8", "replace")


def headers_of(spec: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, str]:
    """The headers, with the variables that are allowed; the others become empty."""
    table: object = spec.get("headers")
    written = cast("dict[str, object]", table) if isinstance(table, dict) else {}
    allowed = cast("list[object]", spec.get("allowedEnvVars") or [])

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        return env.get(name, "") if name in allowed else ""

    return {name: VARIABLE.sub(value, str(text)).strip() for name, text in written.items()}
