"""Ignored settings of Claude Code: each named to a person once, a line for each reason."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crow.project.files import write_atomically
from crow.project.home import state_directory

if TYPE_CHECKING:
    from crow.settings import Settings
    from crow.settings.values import Unused

FILE = "left-out.json"
SHOWN = 6
"""Keys that a line names."""


def new_lines(settings: Settings) -> list[str]:
    """Lines about keys of which nobody was told; they are told then."""
    left = {key: (each.why, str(each.source)) for each in ignored(settings) for key in each.table}
    if not left:
        return []
    path = state_directory() / FILE
    known = _known(path)
    fresh = [key for key in left if key not in known]
    if fresh:
        with suppress(OSError):
            write_atomically(path, json.dumps(sorted({*known, *fresh})))
    groups: dict[tuple[str, str], list[str]] = {}
    for key in fresh:
        groups.setdefault(left[key], []).append(key)
    return [
        f"{source.replace(str(Path.home()), '~', 1)}: {first_keys(keys)}: {why}"
        for (why, source), keys in groups.items()
    ]


def ignored(settings: Settings) -> Iterator[Unused]:
    """What of Claude Code's files is for nobody here: keys and values, whose, and why."""
    from crow.app.models import claude_model, fallback_models
    from crow.settings.foreign import instead
    from crow.settings.values import Unused

    yield from settings.passed_over
    origin, env = settings.origins.get("claudeModel"), {**os.environ, **settings.env}
    named = (env.get("CROW_MODEL"), env.get("CROW_BASE_URL"), settings.model, settings.base_url)
    if origin and not any(named) and not claude_model(settings, env):
        ((why, _),) = instead(["model"])
        yield Unused(origin, {"model": settings.claude_model}, why)
    fallbacks = settings.origins.get("fallbackModel")
    if fallbacks and not fallback_models(settings, env):
        ((why, _),) = instead(["fallbackModel"])
        yield Unused(fallbacks, {"fallbackModel": list(settings.fallback_model)}, why)


def first_keys(keys: Sequence[str]) -> str:
    """The first of some keys, and how many there are more."""
    more = f" and {len(keys) - SHOWN} more" if len(keys) > SHOWN else ""
    return f"{', '.join(keys[:SHOWN])}{more}"


def _known(path: Path) -> set[str]:
    try:
        told: Any = json.loads(path.read_text("utf-8"))
        return {str(key) for key in told}
    except (OSError, ValueError, TypeError):
        return set()
