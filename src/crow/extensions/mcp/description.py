"""The description of a server, before it is asked: where it is, and how it is reached."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast
from urllib.parse import urlsplit

from crow import CrowError
from crow.dataclasses import frozen

if TYPE_CHECKING:
    from crow.extensions.mcp.auth.options import OAuth

Transport = Literal["stdio", "http", "sse", "client", "process"]
Table = Mapping[str, Any]
Hear = Callable[[str, dict[str, Any] | None], None]
"""Called with the method and the parameters of what a server says to a request meanwhile."""

TRANSPORTS: Mapping[str, Transport] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamableHttp": "http",
    "sse": "sse",
}
SOURCES = {"client": "dynamic", "project": "project", "extension": "dynamic"}
"""Who configured a server, in the words of Claude Code, by where it is described."""
_VARIABLE = r"\$\{(\w+)(?::-([^}]*))?\}"


class DescriptionError(CrowError):
    """A description of a server makes no sense: the one of ``name``, for a ``reason``."""

    def __init__(self, text: str, name: str = "", source: str = "", reason: str = "") -> None:
        super().__init__(text)
        self.name = name
        self.source = source
        self.reason = reason or text


class Channel(Protocol):
    """The way to a server that a client has itself."""

    async def ask(self, method: str, params: dict[str, Any], hear: Hear) -> dict[str, Any]:
        """Send a request of MCP: its ``result`` or its ``error``, as the server has it.

        Raises ``OSError`` where it does not reach the server; cancelling takes it back.
        """
        ...


@frozen
class Description:
    """One server. ``source`` is ``client``, ``settings``, ``extension``, ``project``, or a file.

    ``tools`` are the only ones that it is to have, None for all, without ``without_tools``.
    """

    name: str
    source: str
    transport: Transport
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str | None = None
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    oauth: OAuth | None = None
    always_load: bool = False
    tools: frozenset[str] | None = None
    without_tools: frozenset[str] = frozenset()
    channel: Channel | None = field(default=None, repr=False)
    server: object = field(default=None, repr=False)

    def may_have(self, tool: str) -> bool:
        """True for a tool, by its raw name, that its user has not switched off."""
        return (self.tools is None or tool in self.tools) and tool not in self.without_tools

    @property
    def address(self) -> tuple[str, ...]:
        """What is one and the same server in all sessions."""
        own = (self.name,) if self.transport in ("client", "process") else ()
        return (self.transport, self.command, *self.args, self.url, *own)

    @property
    def whose(self) -> str:
        """Who configured it, in the words of Claude Code: ``user``, ``project``, ``plugin``..."""
        return "plugin" if self.name.startswith("plugin:") else SOURCES.get(self.source, "user")

    @property
    def place(self) -> str:
        """Where the server is, without anything that could be secret."""
        if self.transport == "stdio":
            return self.command
        if self.transport == "client":
            return "its own"
        if self.transport == "process":
            return "in this process"
        parts = urlsplit(self.url)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"

    @property
    def shown(self) -> dict[str, Any]:
        """All of it that nobody has to hide."""
        told = {"command": self.command, "args": list(self.args), "cwd": self.cwd}
        if self.url:
            told = {"url": self.place, "signs in": self.oauth is not None}
        names = {"env": list(self.env), "headers": list(self.headers)}
        rest = {name: value for name, value in {**told, **names}.items() if value}
        about = {"name": self.name, "source": self.source, "transport": self.transport}
        return {**about, "place": self.place, **rest}


def described(name: str, table: object, source: str, env: Mapping[str, str]) -> Description | None:
    """A server as a settings file or a client describes it; None where it is switched off.

    An object of the library (``mcp.server.MCPServer``, ``Server``) is a server of this process.
    ``${NAME}`` and ``${NAME:-default}`` stand for variables of ``env``; lists of ``name`` and
    ``value`` are taken for tables. Raises `DescriptionError`.
    """
    if not isinstance(table, Mapping):
        if _is_server(table):
            return Description(name, source, "process", server=table)
        text = f"the MCP server {name!r} must be a table"
        raise DescriptionError(text, name, source, "it must be a table")
    told = cast(Table, table)
    if told.get("disabled") is True or told.get("enabled") is False:
        return None
    try:
        return _described(name, told, source, env)
    except ValueError as error:
        text = f"the MCP server {name!r} ({source}): {error}"
        raise DescriptionError(text, name, source, str(error)) from None


def _is_server(thing: object) -> bool:
    """True for a server of this process; whoever has made one has imported the library whole."""
    library = sys.modules.get("mcp.server")  # a thread may be importing it just now
    return isinstance(thing, tuple(getattr(library, kind, ()) for kind in ("MCPServer", "Server")))


def _described(name: str, told: Table, source: str, env: Mapping[str, str]) -> Description:
    kind = told.get("type") or told.get("transport") or ("stdio" if "command" in told else "http")
    if kind not in TRANSPORTS:
        raise ValueError(f"there is no type {kind!r}; there are stdio, http and sse")
    transport = TRANSPORTS[kind]
    only = frozenset(_texts(told, "tools")) if "tools" in told else None
    without = frozenset(_texts(told, "withoutTools"))
    if transport == "stdio":
        return Description(
            name,
            source,
            transport,
            command=filled(_text(told, "command"), env),
            args=tuple(filled(arg, env) for arg in _texts(told, "args")),
            env=_pairs(told, "env", env),
            cwd=filled(_text(told, "cwd"), env) if told.get("cwd") else None,
            always_load=told.get("alwaysLoad") is True,
            tools=only,
            without_tools=without,
        )
    if told.get("url") is None:
        raise ValueError("it needs a 'command' or a 'url'")
    url = filled(_text(told, "url"), env)
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise ValueError("'url' must begin with http:// or https://")
    return Description(
        name,
        source,
        transport,
        url=url,
        headers=_pairs(told, "headers", env),
        oauth=_oauth(told, env),
        always_load=told.get("alwaysLoad") is True,
        tools=only,
        without_tools=without,
    )


def _oauth(told: Table, env: Mapping[str, str]) -> OAuth | None:
    """How to sign in; not at all where a header says who asks."""
    headers = {name.lower() for name in _pairs(told, "headers", {})}
    if "authorization" in headers or told.get("oauth") is False:
        return None
    from crow.extensions.mcp.auth.options import oauth_of

    return oauth_of(told.get("oauth") or {}, lambda text: filled(text, env))


def _text(told: Table, key: str) -> str:
    value = told.get(key)
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise ValueError(f"{key!r} must be text")
    return value


def _texts(told: Table, key: str) -> Sequence[str]:
    value = told.get(key) or ()
    texts = cast("list[object]", value) if isinstance(value, list | tuple) else [None]
    if not all(isinstance(text, str) and "\0" not in text for text in texts):
        raise ValueError(f"{key!r} must be a list of texts")
    return cast("list[str]", texts)


def _pairs(told: Table, key: str, env: Mapping[str, str]) -> dict[str, str]:
    value: object = told.get(key) or {}
    if isinstance(value, list | tuple):
        listed = [_table(each) for each in cast("list[object]", value)]
        value = {each.get("name"): each.get("value") for each in listed}
    told = {name: _as_text(each) for name, each in _table(value).items()}
    if not all(isinstance(text, str) for text in told.values()):
        raise ValueError(f"{key!r} must be a table of texts")
    return {str(name): filled(text, env) for name, text in told.items()}


def _as_text(value: Any) -> Any:
    """Numbers and truths as a shell has them."""
    return json.dumps(value) if isinstance(value, int | float) else value


def _table(value: object) -> Table:
    if not isinstance(value, Mapping):
        raise ValueError("there must be a table")  # noqa: TRY004 - what is wrong is a setting
    return cast(Table, value)


def filled(text: str, env: Mapping[str, str]) -> str:
    """A text with the variables that it names. Raises ``ValueError`` for one that is not there."""

    def value(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        if name in env:
            return env[name]
        if default is None:
            raise ValueError(f"the environment has no {name}")
        return default

    return re.sub(_VARIABLE, value, text) if env else text


def from_client(listed: object) -> Iterator[Description | DescriptionError]:
    """The servers that a client names: a list of tables, each with its ``name``."""
    for table in cast("list[Any]", listed) if isinstance(listed, list | tuple) else ():
        name = cast(Table, table).get("name", "") if isinstance(table, Mapping) else ""
        if isinstance(table, Mapping) and "channel" in table:
            channel: Channel = cast("Any", table)["channel"]
            yield Description(str(name), "client", "client", channel=channel)
            continue
        yield from _one(str(name), cast(object, table), "client", {})


def from_table(servers: Table, source: str) -> Iterator[Description | DescriptionError]:
    """The servers of a settings table: descriptions by name."""
    for name, table in servers.items():
        yield from _one(name, table, source, os.environ)


def from_project(path: Path) -> Iterator[Description | DescriptionError]:
    """The servers of a project's ``.mcp.json``."""
    file = path / ".mcp.json" if path.is_dir() else path
    try:
        table: Any = json.loads(file.read_text("utf-8-sig"))
        servers = table["mcpServers"]
        yield from from_table(dict(servers), "project")
    except FileNotFoundError:
        return
    except (OSError, ValueError, TypeError, KeyError) as error:
        yield DescriptionError(f"{file} is left out: {type(error).__name__}: {error}")


def _one(
    name: str, table: object, source: str, env: Mapping[str, str]
) -> Iterator[Description | DescriptionError]:
    try:
        found = described(name, table, source, env)
    except DescriptionError as error:
        yield error
        return
    if found is not None:
        yield found
