"""What opencode has: ``opencode.json``, commands, skills and agents."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from crow.cli.moving.files import folders, pairs, read, table, texts
from crow.cli.moving.row import Place, Row, Table
from crow.cli.moving.servers import server_row

LEFT_OUT = {
    "provider": "keys are not copied: providers in the settings, crow login",
    "agent": "an agent is a file in ~/.crow/agents",
    "mode": "an agent is a file in ~/.crow/agents",
    "command": "a command is a file in ~/.crow/commands",
    "plugin": "its plugins are programs for opencode",
    "instructions": "name such files in extensions.instructions",
    "theme": "how a terminal looks is not carried over",
    "keybinds": "how a terminal looks is not carried over",
    "tui": "how a terminal looks is not carried over",
    "share": "Crow shares nothing",
    "autoupdate": "Crow does not update itself",
    "tools": "deny what you do not want: permissions.deny",
}
KNOWN = {"$schema", "mcp", "model", "permission", *LEFT_OUT}
NAMES = ("config.json", "opencode.json", "opencode.jsonc")
TOOLS = {"edit": "Edit", "bash": "Bash", "webfetch": "WebFetch", "read": "Read", "skill": "Skill"}


def rows(place: Place) -> Iterator[Row]:
    """What becomes of it."""
    base = Path(os.environ.get("XDG_CONFIG_HOME") or place.home / ".config") / "opencode"
    for name in NAMES:
        yield from _file(base / name, place, is_project=False)
    for name in NAMES[1:]:
        yield from _file(place.project / name, place, is_project=True)
    for kind, singular in (("commands", "command"), ("skills", "skill")):
        user = [str(base / singular), str(base / kind)]
        yield from folders(place, kind, user, [f".opencode/{singular}", f".opencode/{kind}"])
    for folder in (base, place.project / ".opencode"):
        for path in (folder / "agent", folder / "agents"):
            if path.is_dir():
                why = "put those that you want into .crow/agents"
                yield Row("agents", "left out", why, place.shown(path))


def _file(path: Path, place: Place, *, is_project: bool) -> Iterator[Row]:
    shown = place.shown(path)
    try:
        told = read(path)
    except (OSError, ValueError) as error:
        yield Row("settings", "left out", f"it cannot be read: {error}", shown)
        return
    for name, each in table(told.get("mcp")).items():
        yield _server(name, table(each), shown, is_project=is_project)
    if isinstance(model := told.get("model"), str):
        yield Row("model", "taken", model, shown, ("model",), model, is_project)
    yield from _permissions(told.get("permission"), shown, is_project=is_project)
    for name in told:
        if name not in KNOWN or name in LEFT_OUT:
            yield Row(name, "left out", LEFT_OUT.get(name, "Crow has nothing like it"), shown)


def _server(name: str, told: Table, file: str, *, is_project: bool) -> Row:
    if told.get("enabled") is False:
        return Row(f"MCP server {name}", "left out", "it is switched off", file)
    if "{file:" in str(told):
        why = f"it takes a value from a file: crow mcp add {name} with ${{VARIABLE}} in its place"
        return Row(f"MCP server {name}", "left out", why, file)
    changes: list[str] = []
    if told.get("type") == "remote":
        server: Table = {"type": "http", "url": _filled(str(told.get("url", "")))}
        rest, key = pairs(told.get("headers")), "headers"
        if isinstance(told.get("oauth"), dict):
            changes.append("its sign-in is not copied: crow mcp login")
    else:
        command = texts(told.get("command")) or [""]
        server = {"command": command[0], "args": [_filled(each) for each in command[1:]]}
        rest, key = pairs(told.get("environment")), "env"
    if rest:
        server[key] = {each: _filled(value) for each, value in rest.items()}
    if "timeout" in told:
        changes.append("timeout: every server has extensions.mcp.connect_timeout (60 s)")
    return server_row(name, server, file, changes, is_project=is_project)


def _filled(text: str) -> str:
    """A text with variables as Crow writes them."""
    return re.sub(r"\{env:(\w+)\}", r"${\1:-}", text)


def _permissions(told: object, file: str, *, is_project: bool) -> Iterator[Row]:
    """What is denied or asked about; what is allowed only where a pattern says what."""
    if isinstance(told, str):
        yield Row("permission", "left out", f"{told!r} for everything: a mode does this", file)
    for name, each in table(told).items():
        patterns = {"*": each} if isinstance(each, str) else pairs(each)
        for pattern, verdict in patterns.items():
            yield _rule(name, pattern, verdict, file, is_project=is_project)


def _rule(name: str, pattern: str, verdict: str, file: str, *, is_project: bool) -> Row:
    tool, shown = TOOLS.get(name), f"permission {name} {pattern}"
    is_whole = pattern == "*"
    if tool is None or verdict not in ("allow", "ask", "deny"):
        return Row(shown, "left out", "Crow has no such rule", file)
    if not is_whole and tool != "Bash":
        return Row(shown, "left out", "write it in Crow's rules: crow permissions", file)
    if is_whole and (verdict == "allow" or tool == "Bash"):
        return Row(shown, "left out", f"{verdict} for every call: a mode does this", file)
    rule = tool if is_whole else f"Bash({pattern})"
    to = ("permissions", verdict)
    return Row(shown, "changed", f"{verdict} {rule}", file, to, [rule], is_project)
