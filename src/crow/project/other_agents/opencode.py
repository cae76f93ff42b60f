"""opencode's configuration: ``opencode.json``, commands, skills, agents, in folders and inline."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from crow.project.other_agents.files import Table, pairs, table, texts
from crow.project.other_agents.item import READ_ONLY, AgentFolders, Brought, ItemFactory

LEFT_OUT = {
    "provider": "keys are not copied: providers in the settings, crow login",
    "permission": "crow import --from opencode takes rules of it over",
    "plugin": "its plugins are programs for opencode",
    "share": "Crow shares nothing",
    "tools": "deny what you do not want: permissions.deny",
    "mode": "an agent is a file in ~/.crow/agents",
    "formatter": "a hook for the event PostToolUse does this",
}
NAMES = ("opencode.json", "opencode.jsonc")
TOOLS = {
    "edit": READ_ONLY,
    "write": ("Write",),
    "bash": ("Bash",),
    "read": ("Read",),
    "grep": ("Grep",),
    "glob": ("Glob",),
    "list": ("LS",),
    "webfetch": ("WebFetch",),
    "websearch": ("WebSearch",),
    "task": ("Agent",),
    "skill": ("Skill",),
}
"""What its tools are called here."""
MOST = 200
"""Files that one pattern names."""


def things(place: AgentFolders) -> Iterator[Brought]:
    """All that there is."""
    base = place.own("XDG_CONFIG_HOME", ".config") / "opencode"
    if base.is_dir():
        them = ItemFactory("opencode", is_project=False)
        yield from them.instructions(base / "AGENTS.md")
        yield from _folder(base, them)
        yield from _files((base / name for name in ("config.json", *NAMES)), place, them)
    if (more := place.home / ".opencode").is_dir():
        yield from _folder(more, ItemFactory("opencode", is_project=False))
    if place.project is not None:
        them, folder = ItemFactory("opencode", is_project=True), place.project / ".opencode"
        if folder.is_dir():
            yield from _folder(folder, them)
        files = (at / name for at in (place.project, folder) for name in NAMES)
        yield from _files(files, place, them)


def _folder(base: Path, them: ItemFactory) -> Iterator[Brought]:
    yield from them.folders("commands", base / "command", base / "commands")
    yield from them.folders("skills", base / "skill", base / "skills")
    paths = (path for name in ("agent", "agents") for path in sorted(base.glob(f"{name}/**/*.md")))
    yield from them.agents(paths, agent)
    yield from them.present(base, {"plugin": LEFT_OUT["plugin"], "plugins": LEFT_OUT["plugin"]})


def _files(paths: Iterable[Path], place: AgentFolders, them: ItemFactory) -> Iterator[Brought]:
    for path in paths:
        told, wrong = them.table(path)
        yield from wrong
        for name, each in table(told.get("mcp")).items():
            yield them.one("server", path, name, server(table(each)))
        for name, each in table(told.get("command")).items():
            if isinstance(table(each).get("template"), str):
                yield them.one("command", path, name, each)
        for name, each in table(told.get("agent")).items():
            made = _made(table(each), str(table(each).get("prompt") or ""))
            if made is not None and made["prompt"] and made["description"]:
                yield them.one("agent", path, name, made)
        for pattern in texts(told.get("instructions")):
            yield from _instructions(pattern, path, place, them)
        yield from them.unused(told, path, LEFT_OUT)


def _instructions(
    pattern: str, path: Path, place: AgentFolders, them: ItemFactory
) -> Iterator[Brought]:
    """The files that a pattern names; those of a project are in it."""
    if "://" in pattern:
        yield them.left(path, pattern, "instructions are not fetched")
        return
    top = place.project or place.home
    if them.is_project and (pattern.startswith(("/", "~")) or ".." in Path(pattern).parts):
        yield them.left(path, pattern, "a project's instructions lie in it")
        return
    told = re.sub(r"^~(?=/)", lambda _: str(place.home), pattern)
    named = glob.iglob(os.path.join(top, told), recursive=True)  # noqa: PTH118, PTH207
    for found in sorted(islice(named, MOST)):
        file = Path(os.path.normpath(found))
        if file.is_file() and (not them.is_project or file.is_relative_to(top)):
            yield them.one("instructions", file)


def server(told: Table) -> Table:
    """A server of ``mcp`` in Crow's shape."""
    kept: Table = {"enabled": told.get("enabled", True)}
    if told.get("type") == "remote" or "url" in told:
        headers = {name: filled(value) for name, value in pairs(told.get("headers")).items()}
        return {**kept, "type": "http", "url": filled(str(told.get("url", ""))), "headers": headers}
    given = told.get("command")  # some write it as others have it
    words = [given, *texts(told.get("args"))] if isinstance(given, str) else texts(given)
    command = [filled(each) for each in words] or [""]
    env = {name: filled(value) for name, value in pairs(told.get("environment")).items()}
    where = {"cwd": told["cwd"]} if told.get("cwd") else {}
    return {**kept, "command": command[0], "args": command[1:], "env": env, **where}


def filled(text: str) -> str:
    """A text with variables as Crow writes them."""
    return re.sub(r"\{env:(\w+)\}", r"${\1:-}", text)


def agent(path: Path) -> tuple[str, Table] | None:
    """The agent of a file; None for one that is no sub-agent. Raises ``OSError``."""
    from crow.project.frontmatter import FrontMatter

    front = FrontMatter.parse(path.read_text("utf-8-sig", "replace"))
    made = _made(front.table, front.body.strip())
    if made is None:
        return None
    if not (made["prompt"] and made["description"]):
        raise ValueError("it has no description, or no prompt")
    return path.stem, made


def _made(told: Table, prompt: str) -> Table | None:
    """A sub-agent as Crow defines it; None for what a person chooses, or has switched off."""
    if told.get("mode") == "primary" or told.get("disable") is True:
        return None
    made: Table = {"description": told.get("description") or "", "prompt": prompt}
    given, without = _tools(told)
    return {**made, **({"tools": given} if given else {}), "disallowedTools": without}


def _tools(told: Table) -> tuple[list[str], list[str]]:
    """The tools that are given where all others are not, and those that are not given."""
    off: list[str] = []
    on: list[str] = []
    for name, is_on in table(told.get("tools")).items():
        (on if is_on is True else off).append(name)
    for name, said in table(told.get("permission")).items():
        if said == "deny" or table(said).get("*") == "deny":
            off.append(name)
    given = [ours for name in on for ours in _named(name)] if "*" in off else []
    return given, [ours for name in off if name != "*" for ours in _named(name)]


def _named(tool: str) -> Iterable[str]:
    server, _, rest = tool.partition("_")
    return TOOLS.get(tool, (f"mcp__{server}__{rest or '*'}",))
