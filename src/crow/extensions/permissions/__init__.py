"""Permissions as an extension: what may run, what is asked about, what is refused.

Names are imported when they are first used: the judge costs more than the hook it hangs on.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crow.extensions.permissions.check import check_case as check_case
    from crow.extensions.permissions.check import check_lines as check_lines
    from crow.extensions.permissions.check import parse_call as parse_call
    from crow.extensions.permissions.decision import Decision as Decision
    from crow.extensions.permissions.hook import PermissionsHook as PermissionsHook
    from crow.extensions.permissions.paths.disk import Disk as Disk
    from crow.extensions.permissions.paths.disk import LocalDisk as LocalDisk
    from crow.extensions.permissions.permissions import Permissions as Permissions
    from crow.extensions.permissions.settings import MODES as MODES
    from crow.extensions.permissions.settings import Limits as Limits
    from crow.extensions.permissions.settings import Mode as Mode
    from crow.extensions.permissions.settings import RuleText as RuleText

_ROOMS = {
    "check": "check_case check_lines parse_call",
    "decision": "Decision",
    "hook": "PermissionsHook",
    "paths.disk": "Disk LocalDisk",
    "permissions": "Permissions",
    "settings": "MODES Limits Mode RuleText",
}
_HOMES = {name: room for room, names in _ROOMS.items() for name in names.split()}

__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    """Import a name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
