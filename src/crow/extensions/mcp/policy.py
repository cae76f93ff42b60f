"""The policy on servers, by the lists of the settings: Claude Code's ``allowedMcpServers``.

A rule of either list names a server, its whole command, or a pattern of its URL. What denies wins.
Names say little, since whoever describes a server chooses its name: where the list of what is
allowed has commands, a program must be one of them, and where it has URLs, a server that is reached
by one.

Variables stand in rules that deny alone: ``env`` of any settings file is in the environment, and
could let a rule that allows speak of something else than its author meant.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from crow.extensions.mcp.description import Description, filled
from crow.project import ServerPolicy

Table = Mapping[str, Any]
PORTS = {"http": 80, "https": 443}
DENIED = "deniedMcpServers names it"
NOT_ALLOWED = "allowedMcpServers has it not"
NO_PLUGINS = "strictPluginOnlyCustomization: only plugins bring servers"


def refusal(policy: ServerPolicy, server: Description) -> str:
    """Why a server is not used; empty where it may be.

    What a client lends by a way of its own, and a server of this process, are nobody's to refuse.
    """
    if server.transport in ("client", "process"):
        return ""
    if policy.only_plugins and server.source not in ("settings", "extension"):
        return NO_PLUGINS
    if any(_is_meant(entry, server) for entry in policy.denied):
        return DENIED
    return "" if policy.allowed is None or _is_allowed(policy.allowed, server) else NOT_ALLOWED


def _is_allowed(entries: tuple[Table, ...], server: Description) -> bool:
    key = "serverCommand" if server.transport == "stdio" else "serverUrl"
    stricter = [each for each in entries if key in each]
    if ".." in re.split(r"[/\\]", unquote(urlsplit(server.url).path)):
        return False  # it may leave the folder that a pattern speaks of
    return any(_is_meant(each, server, strictly=True) for each in stricter or entries)


def _is_meant(entry: Table, server: Description, *, strictly: bool = False) -> bool:
    """True where an entry speaks of a server; ``strictly`` in just these words."""
    try:
        if server.transport == "stdio" and "serverCommand" in entry:
            wanted = [_known(word, strictly) for word in entry["serverCommand"]]
            return wanted == [server.command, *server.args]
        if server.transport != "stdio" and "serverUrl" in entry:
            return _fits(_known(entry["serverUrl"], strictly), urlsplit(server.url))
    except ValueError:  # a port that is none
        return False
    return entry.get("serverName") == server.name


def _known(text: str, strictly: bool) -> str:
    try:
        return text if strictly else filled(text, os.environ)
    except ValueError:  # there is no such variable
        return text


def _fits(pattern: str, url: SplitResult) -> bool:
    """True where ``*`` of a pattern can stand for what a URL has there."""
    scheme, has_scheme, rest = pattern.partition("://")
    if not has_scheme:
        scheme, rest = "*", pattern
    place, slash, path = rest.partition("/")
    port = url.port if url.port != PORTS.get(url.scheme) else None
    host = (url.hostname or "").rstrip(".") + (f":{port}" if port else "")
    usual = PORTS.get(url.scheme)
    place = re.sub(rf":{usual}$", "", place.lower()).rstrip(".")
    below = url.path.removeprefix("/") + (f"?{url.query}" if url.query else "")
    is_there = _is_like(scheme.lower(), url.scheme) and (
        _is_like(place, host) or (place.endswith(":*") and _is_like(place[:-2], host))
    )
    return is_there and (not slash or _is_like(path, below))


def _is_like(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None
