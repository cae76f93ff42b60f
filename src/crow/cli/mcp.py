"""Servers of the Model Context Protocol, whose tools, prompts and resources a session has.

  crow mcp list                          every server, and whether it is there
  crow mcp get NAME                      all that is known of one
  crow mcp add NAME COMMAND [ARG ...]    a program; put -- before arguments that begin with a dash
  crow mcp add NAME URL                  a server on the web
  crow mcp add-json NAME JSON            either, as mcpServers has it
  crow mcp remove NAME                   take it out of the files that crow mcp add writes
  crow mcp login NAME                    sign in, with a browser
  crow mcp logout NAME                   forget what was got by that
  crow mcp test NAME                     connect, and list tools, prompts and resources
  crow mcp serve                         be such a server, for other programs

Scopes: user is ~/.crow/settings.json, project is .mcp.json, which others share, local is
.crow/settings.local.json. Those of Claude Code, Codex, opencode and Cursor are read where they are.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from crow.cli.interrupt import run_async
from crow.cli.mcp_files import SCOPES, added, described_in, removed, table_of
from crow.cli.mcp_session import (
    broken_servers,
    connected,
    hook_of,
    refused_servers,
    servers_known,
    withheld_servers,
)
from crow.cli.options import declare_agent
from crow.cli.output import Output, Style
from crow.cli.parser import Parser, UsageError, no_such
from crow.core.errors import CrowError
from crow.entry_points import inside
from crow.text import one_line

if TYPE_CHECKING:
    from crow.extensions.mcp.server import Server

COLOURS: dict[str, Style] = {"ready": "green", "needs sign-in": "yellow", "untrusted": "yellow"}


def declare(parser: Parser) -> None:
    """The options of ``crow mcp``."""
    actions = ", ".join(ACTIONS)
    parser.add_argument("action", metavar="ACTION", nargs="?", default="list", help=actions)
    parser.add_argument("name", metavar="NAME", nargs="?", help="what the server is called")
    parser.add_argument("rest", metavar="COMMAND_OR_URL", nargs="*", help="add: where it is")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("-s", "--scope", choices=SCOPES, help="add, remove: in which file")
    parser.add_argument("-t", "--transport", choices=("stdio", "http", "sse"), help="add: how")
    for short, name, text in (("-e", "--env", "NAME=VALUE"), ("-H", "--header", "'NAME: VALUE'")):
        parser.add_argument(short, name, metavar=text, action="append", default=[], help="add")
    parser.add_argument("--client-id", metavar="ID", help="add: of a client that is registered")
    parser.add_argument("--callback-port", metavar="N", type=int, help="add: of such a client")
    parser.add_argument("--no-browser", action="store_true", help="login: show the address alone")
    declare_agent(parser)


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow mcp``."""
    act = ACTIONS.get(options.action)
    if act is None:
        from crow.cli.migration_hints import action

        unknown = f"{no_such('action', options.action, ACTIONS)} (crow mcp --help)"
        raise UsageError(action("mcp", options.action) or unknown)
    if options.name is None and options.action not in ALONE:
        raise UsageError(f"which server? crow mcp {options.action} NAME")
    return act(options, out)


def _list(options: argparse.Namespace, out: Output) -> int:
    """Connect to all of them at once, and say what became of it."""

    async def look() -> list[dict[str, str]]:
        async with connected(options, out) as servers:
            return [_row(server) for server in servers]

    rows = run_async(look())
    known = {row["name"] for row in rows}
    hook = hook_of(options, out)[1]
    rest = [*broken_servers(hook), *refused_servers(hook), *withheld_servers(options)]
    rows += [row for row in rest if row["name"] not in known]
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        if options.json:
            out.verbatim(json.dumps(row, ensure_ascii=False))
            continue
        state = out.styled(f"{row['state']:13}", COLOURS.get(row["state"], "red"))
        told = ": ".join(filter(None, (row["place"], row["why"])))
        file = out.styled(f"  {one_line(row['source'])}" if "/" in row["source"] else "", "dim")
        out.raw(f"{one_line(row['name']):{width}}  {state}  {one_line(told)}{file}")
    if not rows:
        out.note("there are no MCP servers: crow mcp add NAME COMMAND, or NAME URL")
    return 0


def _row(server: Server) -> dict[str, str]:
    told, needed = server.description, inside("mcp", "auth.sign_in").NEEDED
    state = "needs sign-in" if server.error.startswith(needed) else server.state
    why = f"crow mcp login {server.name}" if state == "needs sign-in" else server.error
    about = {"name": server.name, "state": state, "transport": told.transport, "place": told.place}
    return {**about, "source": told.source, "why": why}


def _get(options: argparse.Namespace, out: Output) -> int:
    """Show one, without what is secret, and without connecting to it."""
    found = [row for row in servers_known(options, out) if row["name"] == options.name]
    if not found:
        raise _unknown(options, out)
    if options.json:
        out.verbatim(json.dumps(found[0], ensure_ascii=False))
        return 0
    width = max(map(len, found[0]))
    for name, value in found[0].items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        out.line(f"{name:{width}}  {text}")
    return 0


def _unknown(options: argparse.Namespace, out: Output) -> CrowError:
    """Why there is no server of this name."""
    rows = servers_known(options, out)
    known = {str(row["name"]): str(row.get("why", "")) for row in rows}
    if why := known.get(options.name):
        return CrowError(f"the MCP server {options.name} is not there: {why}")
    return UsageError(f"{no_such('MCP server', options.name, known)} (crow mcp list)")


def _add(options: argparse.Namespace, out: Output) -> int:
    return _written(options, table_of(options), out)


def _written(options: argparse.Namespace, server: dict[str, Any], out: Output) -> int:
    if why := _refusal(options, server, out):
        raise CrowError(f"the MCP server {options.name} may not be used: {why}")
    place = added(options, options.scope or SCOPES[0], options.name, server)
    out.line(f"the MCP server {options.name} is in {place}")
    if options.scope in ("project", "local"):
        out.note("it counts once you have said so: crow trust")
    return 0


def _refusal(options: argparse.Namespace, server: dict[str, Any], out: Output) -> str:
    """Why the settings would let nobody use a server; empty where they would, or it is broken."""
    _, hook = hook_of(options, out)
    read = inside("mcp", "description")
    found = read.from_table({options.name: server}, options.scope or SCOPES[0])
    return "".join(hook.refusal(each) for each in found if isinstance(each, read.Description))


def _add_json(options: argparse.Namespace, out: Output) -> int:
    """Add a server as Claude Code's users write it: a name, and JSON."""
    try:
        server: Any = json.loads(" ".join(options.rest))
    except ValueError as error:
        raise UsageError(f"crow mcp add-json NAME JSON: {error}") from None
    if not isinstance(server, dict):
        raise UsageError("crow mcp add-json NAME JSON: it is no object")
    return _written(options, cast("dict[str, Any]", server), out)


def _remove(options: argparse.Namespace, out: Output) -> int:
    places = [options.scope] if options.scope else described_in(options, options.name)
    if len(places) > 1:
        raise UsageError(f"it is in several places: --scope {', or '.join(places)}")
    place = removed(options, places[0], options.name) if places else None
    if place is None:
        raise _unknown(options, out)
    out.line(f"the MCP server {options.name} is taken out of {place}")
    return 0


def _login(options: argparse.Namespace, out: Output) -> int:
    """Sign in; 1 where that fails."""

    async def sign_in() -> int:
        async with connected(options, out, options.name) as servers:
            server = _only(servers, options, out)
            if server.state != "ready":
                server.reconnect(sign_in=True)
                await server.settled()
            if server.state != "ready":
                return _failed(server, out)
            out.line(f"the MCP server {server.name} is there: {len(server.tools)} tools")
            return 0

    return run_async(sign_in())


def _failed(server: Server, out: Output) -> int:
    out.error(f"the MCP server {server.name} is not there: {server.error}")
    return 1


def _only(servers: list[Server], options: argparse.Namespace, out: Output) -> Server:
    if not servers:
        raise _unknown(options, out)
    return servers[0]


def _logout(options: argparse.Namespace, out: Output) -> int:
    _, hook = hook_of(options, out)
    urls = [each.url for each in hook.described() if each.name == options.name]
    if not urls:
        raise _unknown(options, out)
    stored = inside("mcp", "auth.credential_store")
    gone = stored.CredentialStore().drop(stored.key_of(options.name, urls[0]))
    out.line(f"{'signed out of' if gone else 'nobody was signed in to'} {options.name}")
    return 0


def _test(options: argparse.Namespace, out: Output) -> int:
    """Connect, and say what the server offers; 1 where it is not there."""

    async def look() -> int:
        async with connected(options, out, options.name) as servers:
            server = _only(servers, options, out)
            if server.state != "ready":
                return _failed(server, out)
            await _tell(server, options, out)
            return 0

    return run_async(look())


async def _tell(server: Server, options: argparse.Namespace, out: Output) -> None:
    resources = await server.resources() if server.has_resources else []
    told: dict[str, list[str]] = {
        "tools": [tool.raw_name for tool in server.tools],
        "prompts": [prompt.name for prompt in server.prompts],
        "resources": [str(each.get("uri") or each.get("uriTemplate")) for each in resources],
    }
    if options.json:
        out.verbatim(json.dumps({"name": server.name, **server.about, **told}, ensure_ascii=False))
        return
    about = ", ".join(f"{name} {text}" for name, text in server.about.items() if text)
    out.line(f"{server.name} is there: {about}", "bold")
    for kind, names in told.items():
        out.line(f"{kind}: {', '.join(names) or 'none'}")
    for name, why in server.dropped.items():
        out.note(f"left out: {name}: {why}")


def _serve(options: argparse.Namespace, out: Output) -> int:
    """Be a server, until standard input ends."""
    from crow.cli.mcp_serve import serve

    return run_async(serve(options, out))


Act = Callable[[argparse.Namespace, Output], int]
ACTIONS: dict[str, Act] = {
    "list": _list,
    "get": _get,
    "add": _add,
    "add-json": _add_json,
    "remove": _remove,
    "login": _login,
    "logout": _logout,
    "test": _test,
    "serve": _serve,
}
ALONE = ("list", "serve")
"""The actions that are about no server by name."""
