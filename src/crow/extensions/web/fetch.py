"""One fetch: hop by hop, each to an address that was looked at, bounded in time and size."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Mapping
from dataclasses import field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from crow import CrowError, __version__
from crow.dataclasses import frozen
from crow.extensions.web.address import (
    Address,
    AddressError,
    Network,
    Resolve,
    addresses,
    demand_public,
    spelled_out,
)

if TYPE_CHECKING:
    import httpx2

HOPS = 5
REDIRECTS = frozenset({301, 302, 303, 307, 308})
PORTS = {"http": 80, "https": 443}
LAST_PORT = 65535
HEADERS = {
    "accept": "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.1",
    "accept-encoding": "gzip",
    "user-agent": f"crow-acp/{__version__}",
}
READABLE = re.compile(
    r"text/.*|application/(?:.*[+/-])?(?:json|xml|yaml|toml|javascript|ecmascript|graphql|sql)"
    r"|application/(?:x-)?(?:ndjson|sh|httpd-php|ipynb)\b.*|"
)
_NAME = re.compile(rb"(?=.{1,254}$)[^.]{1,63}(\.[^.]{1,63})*\.?")
_ODD = re.compile(r"[\s\\\x00-\x20\x7f]")


class FetchError(CrowError):
    """A page cannot be had; the text says why."""


@frozen
class Page:
    """A server's answer. ``elsewhere`` is where another host's page was pointed to."""

    url: str
    code: int
    reason: str
    media_type: str = ""
    charset: str = ""
    body: bytes = b""
    is_cut: bool = False
    elsewhere: str = ""


@frozen
class Fetcher:
    """Fetches pages: ``limit`` in bytes, ``timeout`` in seconds for all of it together."""

    allowed: tuple[Network, ...]
    resolve: Resolve
    limit: int = 5_000_000
    timeout: float = 30.0
    headers: Mapping[str, str] = field(default_factory=lambda: HEADERS)

    async def fetch(self, text: str) -> Page:
        """The page at a URL; redirects are followed as long as they stay at its host.

        Raises `FetchError`.
        """
        try:
            async with asyncio.timeout(self.timeout):
                return await self._follow(parse(text))
        except TimeoutError:
            raise FetchError(f"it took longer than {self.timeout:g} s") from None

    def demand_possible(self, text: str) -> None:
        """Raise `FetchError` where the URL itself says that nothing can be had; nobody is asked."""
        host = parse(text).host
        try:
            demand_public(host, spelled_out(host), self.allowed)
        except AddressError as error:
            raise FetchError(str(error)) from error

    async def _follow(self, url: httpx2.URL) -> Page:
        for _ in range(HOPS + 1):
            page = await self._hop(url)
            if not page.elsewhere:
                return page
            target = parse(urljoin(str(url), page.elsewhere))
            if not is_same_place(url, target):
                return replace(page, elsewhere=str(target))
            url = target
        raise FetchError(f"it redirects more than {HOPS} times")

    async def _hop(self, url: httpx2.URL) -> Page:
        """One request; the page, or what it points to as ``elsewhere``."""
        port = url.port or PORTS[url.scheme]
        host = url.raw_host.decode("ascii")
        try:
            found = await addresses(host, port, self.resolve, self.allowed)
        except AddressError as error:
            raise FetchError(str(error)) from error
        return await self._ask(url, host, found)

    async def _ask(self, url: httpx2.URL, host: str, found: list[Address]) -> Page:
        """Ask the first address that can be reached, under the host's name."""
        import httpx2

        verify = await asyncio.to_thread(httpx2.create_ssl_context) if is_secret(url) else False
        async with httpx2.AsyncClient(
            verify=verify, trust_env=False, timeout=self.timeout, headers=self.headers
        ) as client:
            for address in found:
                request = client.build_request("GET", url.copy_with(host=str(address)))
                request.headers["host"] = url.netloc.decode("ascii")
                if is_secret(url) and host != str(address):
                    request.extensions["sni_hostname"] = host
                try:
                    return await self._read(url, await client.send(request, stream=True))
                except httpx2.ConnectError as error:
                    if address == found[-1]:
                        raise FetchError(f"{host} cannot be reached: {error}") from error
                except httpx2.HTTPError as error:
                    said = str(error) or type(error).__name__
                    raise FetchError(f"{host} broke the connection: {said}") from error
        raise AssertionError("there is an address")

    async def _read(self, url: httpx2.URL, response: httpx2.Response) -> Page:
        code = response.status_code
        reason = response.reason_phrase or phrase(code)
        try:
            if code in REDIRECTS and "location" in response.headers:
                return Page(str(url), code, reason, elsewhere=response.headers["location"])
            media_type, _, rest = response.headers.get("content-type", "").partition(";")
            media_type = media_type.strip().lower()
            charset = re.search(r"charset\s*=\s*[\"']?([\w.:-]+)", rest, re.IGNORECASE)
            if not READABLE.fullmatch(media_type):
                raise FetchError(f"it is {media_type}, which is no text")
            body, is_cut = await self._body(response)
            name = charset[1] if charset else ""
            return Page(str(url), code, reason, media_type, name, body, is_cut)
        finally:
            await response.aclose()

    async def _body(self, response: httpx2.Response) -> tuple[bytes, bool]:
        """The body, unpacked, and whether it is longer; what is read is bounded packed or not."""
        body, is_cut = bytearray(), False
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > self.limit:
                is_cut = True
                break
        match response.headers.get("content-encoding", "").strip().lower():
            case "" | "identity":
                return bytes(body[: self.limit]), is_cut
            case "gzip" | "x-gzip" | "deflate":
                return self._unpacked(body, is_cut)
            case other:
                raise FetchError(f"it came packed as {other}, which was not asked for")

    def _unpacked(self, body: bytes | bytearray, is_cut: bool) -> tuple[bytes, bool]:
        try:
            unpacked = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(body, self.limit + 1)
        except zlib.error as error:
            raise FetchError("its packing is broken") from error
        return unpacked[: self.limit], is_cut or len(unpacked) > self.limit


def parse(text: str) -> httpx2.URL:
    """A URL that every client reads the same way. Raises `FetchError`."""
    import httpx2

    text = text.strip()
    if _ODD.search(text):
        raise FetchError("the URL has blanks, backslashes or control characters in it")
    try:
        url = httpx2.URL(text)
    except httpx2.InvalidURL as error:
        raise FetchError(f"that is no URL: {error}") from error
    if url.scheme not in PORTS or not url.host:
        raise FetchError("the URL must begin with https:// or http:// and name a host")
    if url.userinfo:
        raise FetchError("the URL must not hold a name or a password")
    if not 1 <= (PORTS[url.scheme] if url.port is None else url.port) <= LAST_PORT:
        raise FetchError(f"there is no port {url.port}")
    if not _NAME.fullmatch(url.raw_host):
        raise FetchError("no host can have the name that the URL has")
    return url.copy_with(fragment=None)


def plain(text: str) -> str:
    """A URL as it is fetched, its host in ASCII: what permission rules are to see.

    Raises `FetchError`.
    """
    url = parse(text)
    name = url.raw_host.decode("ascii")
    host = f"[{name}]" if ":" in name else name
    port = f":{url.port}" if url.port else ""
    return f"{url.scheme}://{host}{port}{url.raw_path.decode('ascii')}"


def is_same_place(url: httpx2.URL, target: httpx2.URL) -> bool:
    """True for a redirect that may be followed: the same host, with or without ``www``.

    Another port, or from a secret connection to an open one, is another place.
    """
    if is_secret(url) and not is_secret(target):
        return False
    usual = url.port is None and target.port is None
    names = {each.raw_host.decode("ascii").removeprefix("www.") for each in (url, target)}
    return len(names) == 1 and (usual or url.port == target.port)


def is_secret(url: httpx2.URL) -> bool:
    """True for https."""
    return url.scheme == "https"


def phrase(code: int) -> str:
    """The usual words for a status."""
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return ""
