"""A company's proxy: what Crow's own environment says that the way out leads through."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from crow.dataclasses import frozen

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_PORTS = {"http": 80, "https": 443}


@frozen
class Upstream:
    """A proxy for HTTP, reached by TLS or not; ``fields`` are those that it wants to see."""

    host: str
    port: int
    is_secret: bool
    fields: bytes = b""

    async def connect(self) -> Streams:
        """A connection to the proxy itself. Raises ``OSError``."""
        return await asyncio.open_connection(self.host, self.port, ssl=self.is_secret or None)

    async def tunnel(self, host: str, port: int) -> Streams:
        """A connection through it. Raises ``OSError`` where it gives none."""
        reader, writer = await self.connect()
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        head = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n".encode("latin-1")
        writer.write(head + self.fields + b"\r\n")
        try:
            said = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n", 1)[0].decode("latin-1")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            said = "nothing"
        if said.split(" ")[1:2] != ["200"]:
            writer.close()
            raise OSError(f"the proxy {self.host} said to {place}: {said}")
        return reader, writer


def upstream_to(
    host: str, port: int, *, is_plain: bool, env: Mapping[str, str] = os.environ
) -> Upstream | None:
    """The proxy for a host, None where it is reached straight; ``is_plain`` for http://.

    ``HTTP_PROXY`` (in small letters), ``HTTPS_PROXY``, ``ALL_PROXY`` and ``NO_PROXY`` say so.
    Raises ``OSError`` for one that speaks something else than HTTP.
    """
    proxies = {
        name.lower().removesuffix("_proxy"): value
        for name, value in sorted(env.items())  # small letters, which come later, count
        if name.lower().endswith("_proxy") and value
    }
    url = proxies.get("http" if is_plain else "https") or proxies.get("all")
    if not url or _is_exempt(host, port, proxies.get("no", "")):
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in _PORTS or not parts.hostname:
        raise OSError(f"the proxy of the environment is none for HTTP ({parts.scheme}://)")
    said = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}".encode()
    fields = b"Proxy-Authorization: Basic " + base64.b64encode(said) + b"\r\n"
    return Upstream(
        parts.hostname,
        parts.port or _PORTS[parts.scheme],
        parts.scheme == "https",
        fields if parts.username else b"",
    )


def _is_exempt(host: str, port: int, names: str) -> bool:
    """Whether a list such as ``localhost, .example.com, *`` names a host, or one above it."""
    for each in names.lower().replace(",", " ").split():
        name = each.removeprefix("*").removeprefix(".")
        above = (f".{host.lower()}", f".{host.lower()}:{port}")
        if each == "*" or (name and any(one.endswith(f".{name}") for one in above)):
            return True
    return False
