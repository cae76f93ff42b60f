"""Permissions as an extension: what may run, what is asked about, what is refused.

Names are imported when they are first used: the judge costs more than the hook it hangs on.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crow.extensions.permissions.check import check_case, check_lines, parse_call
    from crow.extensions.permissions.decision import Decision
    from crow.extensions.permissions.hook import PermissionsHook
    from crow.extensions.permissions.paths.disk import Disk, LocalDisk
    from crow.extensions.permissions.permissions import Permissions
    from crow.extensions.permissions.settings import MODES, Limits, Mode, RuleText

__all__ = [
    "MODES",
    "Decision",
    "Disk",
    "Limits",
    "LocalDisk",
    "Mode",
    "Permissions",
    "PermissionsHook",
    "RuleText",
    "check_case",
    "check_lines",
    "parse_call",
]

_HOMES = {
    "MODES": "settings",
    "Decision": "decision",
    "Disk": "paths.disk",
    "Limits": "settings",
    "LocalDisk": "paths.disk",
    "Mode": "settings",
    "Permissions": "permissions",
    "PermissionsHook": "hook",
    "RuleText": "settings",
    "check_case": "check",
    "check_lines": "check",
    "parse_call": "check",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
