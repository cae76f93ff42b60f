"""Changes of settings files, as far as hooks let them hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from crow.app.settings_updater import NAME, SessionSettings
from crow.core.hooks.contexts import ConfigContext, SessionContext
from crow.project.files import Stamp, stamp
from crow.project.trust import stamps
from crow.settings import SettingsError, Source
from crow.settings.files import is_there, parse_file

LAYERS: Mapping[str, str] = {
    "user": "user_settings",
    "command line": "user_settings",
    "project": "project_settings",
    "local": "local_settings",
    "managed": "policy_settings",
}
Look: TypeAlias = tuple[str, Stamp | None]
"""The path of a file, and how it looked."""


async def changed_files(
    ctx: SessionContext, held: SessionSettings, own: Collection[Look]
) -> list[str]:
    """Read the files; the paths of those that say something new that holds.

    ``own`` are paths and looks of files that were written for the user: nobody is asked about them.
    """
    changed = set(held.memory.changed)
    before = held.settings.files
    edited = [each for each in before if each.path in changed]
    news = [str(each) for each in edited if await _agreed(ctx, held, each, own)]
    assert held.settings.reader is not None
    with suppress(SettingsError):
        held.settings = held.settings.reader.load(ctx.cwd, held.memory)
    held.would_run = stamps(held.project)
    for each in held.settings.files:  # beside the administrator's: nobody can be against it
        if each not in before:
            await _fire(ctx, each, parsed(each.path) or {})
            news.append(str(each))
    return news


async def _agreed(
    ctx: SessionContext, held: SessionSettings, source: Source, own: Collection[Look]
) -> bool:
    """Ask the hooks about one file's change; True where it says something new that holds."""
    path, memory = source.path, held.memory
    before = memory.known(path)
    try:
        now = parsed(path)
    except (OSError, ValueError, SettingsError):
        return False
    memory.held.pop(path, None)
    if now == before or (path, stamp(path)) in own:
        return False
    refused, said = await _fire(ctx, source, now or {})
    if refused and source.layer != "managed":
        memory.held[path] = before
        text = f"a hook refuses the change of {path}: what it said before still holds"
        await ctx.ui.notify(text, severity="warning")
        return False
    if said != (now or {}):
        memory.held[path] = said
    return True


async def _fire(
    ctx: SessionContext, source: Source, table: dict[str, Any]
) -> tuple[bool, dict[str, Any]]:
    """Let hooks see what a file says now: whether one refuses it, and what they make of it."""
    layer = LAYERS[source.layer]
    change = ConfigContext(ctx.agent, ctx.session, {NAME: table}, source=layer, path=source.path)
    ruling = await change.ui.agreed(await ctx.agent.hooks.on_config_change.fire(change))
    return ruling.refused, dict(change.changes.get(NAME) or {})


def parsed(path: str) -> dict[str, Any] | None:
    """What a file says; None where there is none. Raises what `parse_file` raises."""
    return parse_file(Path(path)) if is_there(Path(path)) else None
