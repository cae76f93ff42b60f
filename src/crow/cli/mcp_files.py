"""The files that `crow mcp add` writes servers into, and takes them out of."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from crow.cli.options import directory
from crow.cli.parser import UsageError
from crow.core.errors import CrowError
from crow.project.files import write_atomically
from crow.project.trust import is_trusted, project_of, trust

SCOPES = ("user", "project", "local")
SERVERS = "mcpServers"
Table = dict[str, Any]


def path_of(options: argparse.Namespace, scope: str) -> Path:
    """The file of a scope."""
    project = project_of(directory(options), Path.home())
    match scope:
        case "user":
            return Path.home() / ".crow" / "settings.json"
        case "project":
            return project / ".mcp.json"
        case _:
            return project / ".crow" / "settings.local.json"


def table_of(options: argparse.Namespace) -> Table:
    """A server as a command line describes it. Raises `UsageError`."""
    if not options.rest:
        raise UsageError("where is it? crow mcp add NAME COMMAND [ARG ...], or NAME URL")
    where, *args = cast("list[str]", options.rest)
    is_web = where.startswith(("http://", "https://"))
    kind = options.transport or ("http" if is_web else "stdio")
    if is_web is (kind == "stdio"):
        raise UsageError(f"a server by {kind} needs {'a command' if is_web else 'a URL'}")
    if kind == "stdio":
        env = _pairs(options.env, "=", "--env")
        return {"command": where, "args": args, **({"env": env} if env else {})}
    if args:
        raise UsageError(f"what is {args[0]!r}? A server on the web has a URL and nothing else")
    headers = _pairs(options.header, ":", "--header")
    told = {"clientId": options.client_id, "callbackPort": options.callback_port}
    oauth = {name: value for name, value in told.items() if value is not None}
    more = {"headers": headers, "oauth": oauth}
    return {"type": kind, "url": where, **{name: each for name, each in more.items() if each}}


def _pairs(texts: Sequence[str], sign: str, option: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        name, found, value = text.partition(sign)
        if not found or not name.strip():
            raise UsageError(f"{option} takes NAME{sign}VALUE, not {text!r}")
        pairs[name.strip()] = value.strip() if sign == ":" else value
    return pairs


def added(options: argparse.Namespace, scope: str, name: str, server: Table) -> Path:
    """Write a server into the file of a scope; the file. Raises `CrowError`."""
    if not name.strip() or not name.isprintable():
        raise UsageError(f"a server is not called {name!r}: a name can be read in a line")
    path = path_of(options, scope)
    table = _read(path)
    servers = _servers(table)
    if name in servers:
        raise UsageError(f"{path} has a server {name!r} already: crow mcp remove {name}")
    _write(options, path, {**table, SERVERS: {**servers, name: server}})
    return path


def described_in(options: argparse.Namespace, name: str) -> list[str]:
    """The scopes whose files have a server of this name."""
    return [each for each in SCOPES if name in _servers(_read(path_of(options, each)))]


def removed(options: argparse.Namespace, scope: str, name: str) -> Path | None:
    """Take a server out of the file of a scope; None where it was not there."""
    path = path_of(options, scope)
    table = _read(path)
    servers = dict(_servers(table))
    if servers.pop(name, None) is None:
        return None
    _write(options, path, {**table, SERVERS: servers})
    return path


def _read(path: Path) -> Table:
    try:
        found: object = json.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise CrowError(f"{path} cannot be read, so nothing is written: {error}") from error
    if not isinstance(found, dict):
        raise CrowError(f"{path} holds no table, so nothing is written")
    return cast(Table, found)


def _servers(table: Table) -> Table:
    found = table.get(SERVERS)
    return cast(Table, found) if isinstance(found, dict) else {}


def _write(options: argparse.Namespace, path: Path, table: Table) -> None:
    """Write a file; a project that was trusted before still is: the user has just said this."""
    project = project_of(directory(options), Path.home())
    was_trusted = is_trusted(project) and path.is_relative_to(project)
    try:
        write_atomically(path, f"{json.dumps(table, indent=2, ensure_ascii=False)}\n")
    except OSError as error:
        raise CrowError(f"{path} cannot be written: {error.strerror}") from error
    if was_trusted:
        trust(project)
