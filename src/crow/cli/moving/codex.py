"""What Codex has: ``config.toml``, prompts and skills, for its user and for a project."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from crow.cli.moving.files import folders, pairs, read, table, texts
from crow.cli.moving.row import Place, Row, Table
from crow.cli.moving.servers import server_row

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
}
KNOWN = {"model", "model_provider", "mcp_servers", "projects", *LEFT_OUT}


def rows(place: Place) -> Iterator[Row]:
    """What becomes of it."""
    own = Path(os.environ.get("CODEX_HOME") or place.home / ".codex")
    yield from _file(own / "config.toml", place, is_project=False)
    yield from _file(place.project / ".codex/config.toml", place, is_project=True)
    yield from folders(place, "commands", [str(own / "prompts")], [".codex/prompts"])
    yield from folders(place, "skills", [str(own / "skills")], [".codex/skills"])
    if (own / "AGENTS.md").is_file():
        why = "link it to ~/.crow/AGENTS.md, where it is read"
        yield Row("instructions", "left out", why, place.shown(own / "AGENTS.md"))
    if (own / "auth.json").is_file():
        yield Row("sign-in", "left out", "keys are not copied: crow login", "auth.json")


def _file(path: Path, place: Place, *, is_project: bool) -> Iterator[Row]:
    shown = place.shown(path)
    try:
        told = read(path)
    except (OSError, ValueError) as error:
        yield Row("settings", "left out", f"it cannot be read: {error}", shown)
        return
    for name, each in table(told.get("mcp_servers")).items():
        yield from _server(name, table(each), shown, is_project=is_project)
    yield from _model(told, shown, is_project=is_project)
    for name in told:
        if name in LEFT_OUT:
            yield Row(name, "left out", LEFT_OUT[name], shown)
        elif name not in KNOWN:
            yield Row(name, "left out", "Crow has nothing like it", shown)


def _model(told: Table, file: str, *, is_project: bool) -> Iterator[Row]:
    model, provider = told.get("model"), told.get("model_provider", "openai")
    if not isinstance(model, str):
        return
    if provider != "openai":
        why = f"name it with its provider, which Crow may call otherwise: {provider}/{model}"
        yield Row("model", "left out", why, file)
        return
    name = f"openai/{model}"
    yield Row("model", "changed", f"it is {name} here", file, ("model",), name, is_project)


def _server(name: str, told: Table, file: str, *, is_project: bool) -> Iterator[Row]:
    if told.get("enabled") is False:
        yield Row(f"MCP server {name}", "left out", "it is switched off", file)
        return
    changes: list[str] = []
    if "url" in told:
        headers = pairs(told.get("http_headers"))
        named = pairs(told.get("env_http_headers"))
        headers |= {header: f"${{{variable}}}" for header, variable in named.items()}
        if variable := told.get("bearer_token_env_var"):
            headers["Authorization"] = f"Bearer ${{{variable}}}"
        server: Table = {"type": "http", "url": told["url"]}
        server |= {"headers": headers} if headers else {}
    else:
        passed = {variable: f"${{{variable}:-}}" for variable in texts(told.get("env_vars"))}
        env = passed | pairs(told.get("env"))
        server = {"command": told.get("command", ""), "args": texts(told.get("args"))}
        server |= {"env": env} if env else {}
        server |= {"cwd": told["cwd"]} if told.get("cwd") else {}
    changes += _changes(told)
    row = server_row(name, server, file, changes, is_project=is_project)
    yield row
    if row.is_written:
        for tool in texts(told.get("disabled_tools")):
            rule = f"mcp__{name}__{tool}"
            to = ("permissions", "deny")
            yield Row(f"tool {tool}", "changed", f"deny {rule}", file, to, [rule], is_project)


def _changes(told: Table) -> Iterator[str]:
    for key in ("startup_timeout_sec", "startup_timeout_ms"):
        if key in told:
            yield f"{key}: every server has extensions.mcp.connect_timeout (60 s)"
    if "tool_timeout_sec" in told:
        yield "tool_timeout_sec: every server has extensions.mcp.call_timeout (300 s)"
    if "enabled_tools" in told:
        yield "enabled_tools: all of its tools are there; deny those that you do not want"
