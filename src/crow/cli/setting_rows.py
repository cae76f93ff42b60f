"""Every setting as a row: its value, where that came from, and why it does not count."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, cast

from crow.app.composer import Composer
from crow.core.support.frozen import frozen
from crow.settings import Settings
from crow.settings.schema import whole as whole_schema
from crow.settings.secrets import hidden

if TYPE_CHECKING:
    from crow.core.agent import Agent

UNTRUSTED = "the project is not trusted (crow trust)"
ONLY_MANAGED = frozenset({"allowManagedHooksOnly", "strictPluginOnlyCustomization"})
NOT_MANAGED = "only the administrator's managed settings can say so"
BY_ENVIRONMENT = {
    "model": "CROW_MODEL",
    "base_url": "CROW_BASE_URL",
    "wire": "CROW_WIRE",
    "api_key": "CROW_API_KEY",
}
Node = Mapping[str, Any]


@frozen
class Row:
    """One value of one setting.

    ``state`` is ``set``, ``default`` (nobody has said anything; None where there is no value then)
    or ``left out``, with the ``reason``.
    """

    name: str
    value: Any
    source: str = ""
    state: Literal["set", "default", "left out"] = "set"
    reason: str = ""


def rows(
    settings: Settings,
    env: Mapping[str, str] = os.environ,
    refused: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Row]:
    """All settings that the schema has, and what files say beside; then what is left out.

    ``refused`` is what an extension does not take, by path, and why.
    """
    for row in _rows(settings, env):
        why = next((refused[path] for path in refused if _is_about(path, row.name)), "")
        yield replace(row, state="left out", reason=why) if why and row.state == "set" else row


def _is_about(path: str, name: str) -> bool:
    """Whether one of two paths leads to the other."""
    return f"{path}.".startswith(f"{name}.") or f"{name}.".startswith(f"{path}.")


def refused_by(agent: Agent, settings: Settings) -> dict[str, str]:
    """What extensions of files and folders, which no schema knows, do not take, and why."""
    composer = Composer(agent, settings)
    known = {*agent.extensions, *(found.name for found in agent.found)}
    missing = (name for name in settings.extensions if name not in known)
    composer.refused |= {
        f"extensions.{name}": f"there is no extension {name!r}" for name in missing
    }
    for found in agent.found:
        for name in found.names if found.problems else ():
            composer.options_for(type(agent.extensions[name]), found.name)
    return composer.refused


def _rows(settings: Settings, env: Mapping[str, str]) -> Iterator[Row]:
    whole = whole_schema()
    for name, node in whole["properties"].items():
        if name == "hooks":
            yield from _hooks(settings)
        elif name == "sandbox":
            yield from _sandbox(settings, whole, node, env)
        elif env.get(BY_ENVIRONMENT.get(name, "")) and not _is_said(settings, name):
            yield from _from_environment(settings, name, env)
        elif name == "model" and settings.claude_model and not settings.model:
            yield _claudes_model(settings, env)
        elif name != "$schema":
            value = settings.switches.get(name, settings.values.get(name))
            yield from _setting(settings, whole, node, name, value)
    yield from _left_out(settings)


def _claudes_model(settings: Settings, env: Mapping[str, str]) -> Row:
    """The model of Claude Code's settings, where nobody names another."""
    from crow.app.models import claude_model

    source = str(settings.origins["claudeModel"])
    if model := claude_model(settings, {**env, **settings.env}):
        return Row("model", model, source)
    why = "there is no key for it (crow login), or it is no model of Anthropic's"
    return Row("model", settings.claude_model, source, "left out", why)


def _sandbox(settings: Settings, whole: Node, node: Node, env: Mapping[str, str]) -> Iterator[Row]:
    """What is said of the sandbox, the environment's word included."""
    from crow.app.sandbox import VARIABLE, sandbox_of

    off = sandbox_of(settings, env).off
    for row in _setting(settings, whole, node, "sandbox", settings.values.get("sandbox")):
        if row.name == "sandbox.enabled" and off.startswith(VARIABLE):
            yield Row(row.name, False, f"{off} in the environment")
            if row.state == "set":
                yield replace(row, state="left out", reason=f"{VARIABLE} goes before it")
        else:
            yield row


def _left_out(settings: Settings) -> Iterator[Row]:
    """What does not fit or is not for Crow, then what an untrusted project wants."""
    for each in (*settings.rejected, *settings.passed_over):
        for name, value in each.table.items():
            yield Row(name, hidden(name, value), str(each.source), "left out", each.why)
    for each in settings.withheld:
        for name, value in _leaves(each.table, ""):
            yield Row(name, hidden(name, value), str(each.source), "left out", UNTRUSTED)


def _is_said(settings: Settings, name: str) -> bool:
    """True for a model that goes before the environment's: the administrator's, an option's."""
    origin = settings.origins.get(name)
    strong = origin is not None and origin.layer in ("command line", "managed")
    return name == "model" and strong


def _from_environment(settings: Settings, name: str, env: Mapping[str, str]) -> Iterator[Row]:
    variable = BY_ENVIRONMENT[name]
    yield Row(name, hidden(name, env[variable]), f"{variable} in the environment")
    if name in settings.origins:
        reason = f"{variable} goes before it"
        value = hidden(name, settings.values[name])
        yield Row(name, value, str(settings.origins[name]), "left out", reason)


def _setting(settings: Settings, whole: Node, node: Node, path: str, value: Any) -> Iterator[Row]:
    """A setting that the schema describes; a table's entries one by one."""
    if "$ref" in node:
        node = whole["$defs"][node["$ref"].rpartition("/")[2]]
    known: Node = node.get("properties", {})
    if path == "permissions.defaultMode":
        yield from _mode(settings, value)
    elif path in ONLY_MANAGED and path in settings.origins:
        is_theirs = settings.origins[path].layer == "managed"
        state, why = ("set", "") if is_theirs else ("left out", NOT_MANAGED)
        yield Row(path, value, str(settings.origins[path]), state, why)
    elif known and (value or path != "extensions.limits"):  # `limits` says the same
        table = cast("Node", value or {})
        for name in (*known, *(name for name in table if name not in known)):
            inner = known.get(name, {})
            yield from _setting(settings, whole, inner, f"{path}.{name}", table.get(name))
    elif not known:
        yield from _leaf(settings, node, path, value)


def _leaf(settings: Settings, node: Node, path: str, value: Any) -> Iterator[Row]:
    """A setting that is no table, or one whose names are free."""
    entries = settings.lists.get(path, ())
    if entries:
        yield from (Row(path, hidden(path, each.text), str(each.source)) for each in entries)
    elif isinstance(value, dict) and value:
        for name, leaf in _leaves(cast("Node", value), path):
            yield Row(name, hidden(name, leaf), str(settings.origins.get(name, "")))
    elif path in settings.origins:
        yield Row(path, hidden(path, value), str(settings.origins[path]))
    else:
        yield Row(path, node.get("default"), "", "default")


def _mode(settings: Settings, wanted: Any) -> Iterator[Row]:
    mode = settings.permissions.mode
    name = "permissions.defaultMode"
    source = str(settings.origins.get(name, ""))
    if mode is None:
        yield Row(name, "default", "", "default")
    else:
        yield Row(name, mode, source)
    if wanted is not None and wanted != mode:
        yield Row(name, wanted, source, "left out", "it is not for this file to choose")


def _hooks(settings: Settings) -> Iterator[Row]:
    for source, table in settings.hooks:
        for event, groups in table.items():
            yield Row(f"hooks.{event}", hidden("hooks", groups), str(source))
    for each in settings.unused_hooks:
        for event, groups in each.table.items():
            value = hidden("hooks", groups)
            yield Row(f"hooks.{event}", value, str(each.source), "left out", each.why)
    if not settings.hooks and not settings.unused_hooks:
        yield Row("hooks", {}, "", "default")


def _leaves(table: Node, prefix: str) -> Iterator[tuple[str, Any]]:
    """The values of a table of tables, each with its dotted path."""
    for name, value in table.items():
        path = f"{prefix}.{name}" if prefix else name
        if isinstance(value, dict) and value:
            yield from _leaves(cast("Node", value), path)
        elif value != {}:
            yield path, value
