"""Domain rules: ``domain:example.com``, ``domain:*.example.com``, ``domain:*``."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

PLAIN_URL = re.compile(r"https?://[^/?#@\s\\]+(?:/[^\s\\]*|[?#][^@\s\\]*)?", re.IGNORECASE)


def host_of(url: str) -> str | None:
    """The host that a URL certainly means; None where clients could disagree."""
    if not PLAIN_URL.fullmatch(url):
        return None
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return None
    return plain_host(host)


def plain_host(host: str) -> str | None:
    """A host name in its normal form: lower case, ASCII, no trailing dot."""
    host = host.strip().rstrip(".").lower()
    if not host.isascii():
        try:
            host = host.encode("idna").decode()
        except UnicodeError:
            return None
    return host if re.fullmatch(r"[a-z0-9_.:\[\]-]+", host) else None


def possible_hosts(url: str) -> set[str]:
    """Every host that some client may take a URL to mean."""
    found: set[str] = set()
    for text in {url, unquote(url)}:
        rest = re.sub(r"^\s*[a-z][a-z0-9+.-]*:[/\\]*", "", text, flags=re.IGNORECASE)
        for piece in re.split(r"[/\\?#@\s]", rest):
            host = plain_host(piece.rsplit(":", 1)[0] if piece.count(":") == 1 else piece)
            if host:
                found.add(host)
    return found


def domain_expression(pattern: str) -> re.Pattern[str]:
    """A domain pattern as a regular expression for a host. Raises ValueError for none."""
    pattern = pattern.strip().rstrip(".").lower()
    if not pattern:
        raise ValueError("it names no domain")
    if pattern == "*":
        return re.compile(r".+")
    head = r"(?:[^.]+\.)+" if pattern.startswith("*.") else ""
    body = pattern[2:] if head else pattern
    if not body.isascii():
        body = plain_host(body) or body
    return re.compile(head + re.escape(body).replace(r"\*", "[^.]*"))
