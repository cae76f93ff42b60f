"""Codex' configuration: ``config.toml``, prompts, skills and agents, of a user and of a project."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from crow.project.other_agents.files import Table, pairs, read, table, texts
from crow.project.other_agents.item import READ_ONLY, AgentFolders, Brought, ItemFactory

LEFT_OUT = {
    "approval_policy": "Crow asks by its rules: crow permissions list",
    "sandbox_mode": "commands run in Crow's own sandbox: crow sandbox",
    "sandbox_workspace_write": "commands run in Crow's own sandbox: crow sandbox",
    "model_providers": "keys are not copied: providers in the settings, crow login",
    "model_reasoning_effort": "crow run --effort, or /think in a conversation",
    "profiles": "crow --settings FILE is one",
    "hooks": "put them into the hooks of ~/.crow/settings.json: crow hooks",
    "notify": "a hook for the event Notification does this",
    "tui": "how a terminal looks is not carried over",
    "shell_environment_policy": "keys are kept from commands without it",
    "plugins": "add those that you want: crow plugin add",
}
FILES = {
    "hooks.json": "put them into the hooks of ~/.crow/settings.json: crow hooks",
    "rules": "write them as Crow's rules: crow permissions",
    "auth.json": "keys are not copied: crow login",
}


def things(place: AgentFolders) -> Iterator[Brought]:
    """All that there is."""
    own = place.own("CODEX_HOME", ".codex")
    if own.is_dir():
        them = ItemFactory("codex", is_project=False)
        yield from them.instructions(own / "AGENTS.override.md", own / "AGENTS.md")
        yield from _folder(own, them)
        yield from them.present(own, FILES)
    if place.project is not None and (theirs := place.project / ".codex").is_dir():
        yield from _folder(theirs, ItemFactory("codex", is_project=True))


def _folder(base: Path, them: ItemFactory) -> Iterator[Brought]:
    yield from them.folders("commands", base / "prompts")
    yield from them.folders("skills", base / "skills")
    path = base / "config.toml"
    told, wrong = them.table(path)
    yield from wrong
    roles = _roles(base, told)
    files = dict.fromkeys([*sorted(base.glob("agents/*.toml")), *roles])
    for file in files:
        if not them.is_project or file.parent == base / "agents":  # elsewhere it is not watched
            yield from them.agents([file], partial(agent, roles.get(file, {})))
    for name, each in table(told.get("mcp_servers")).items():
        yield them.one("server", path, name, server(table(each)))
    yield from them.unused(told, path, LEFT_OUT)


def _roles(base: Path, told: Table) -> dict[Path, Table]:
    """What ``config.toml`` says of agents, by the files that it names."""
    roles = {name: table(each) for name, each in table(told.get("agents")).items()}
    return {
        Path(os.path.normpath(base / str(each["config_file"]))): {"name": name, **each}
        for name, each in roles.items()
        if each.get("config_file")
    }


def server(told: Table) -> Table:
    """A server of ``mcp_servers`` in Crow's shape."""
    kept: Table = {"enabled": told.get("enabled", True)}
    for ours, theirs in (("tools", "enabled_tools"), ("withoutTools", "disabled_tools")):
        if theirs in told:
            kept[ours] = texts(told[theirs])
    if "url" not in told:
        env = {name: f"${{{name}:-}}" for name in texts(told.get("env_vars"))}
        env |= pairs(told.get("env"))
        where = {"cwd": told["cwd"]} if told.get("cwd") else {}
        args = texts(told.get("args"))
        return {**kept, "command": told.get("command", ""), "args": args, "env": env, **where}
    headers = pairs(told.get("http_headers"))
    named = pairs(told.get("env_http_headers"))
    headers |= {header: f"${{{variable}}}" for header, variable in named.items()}
    if variable := told.get("bearer_token_env_var"):
        headers["Authorization"] = f"Bearer ${{{variable}}}"
    return {**kept, "type": "http", "url": told["url"], "headers": headers}


def agent(role: Table, path: Path) -> tuple[str, Table]:
    """The agent of a file, of which settings may say more. Raises ``ValueError`` or ``OSError``."""
    told = {**role, **read(path)}
    prompt, description = told.get("developer_instructions"), told.get("description")
    if not (isinstance(prompt, str) and isinstance(description, str)):
        raise ValueError("it has no description, or no developer_instructions")  # noqa: TRY004
    made: Table = {"description": description, "prompt": prompt}
    if told.get("sandbox_mode") == "read-only":
        made["disallowedTools"] = list(READ_ONLY)
    return str(told.get("name") or path.stem), made
