"""Permissions as an extension: what may run, what is asked about, what is refused."""

from __future__ import annotations

from crow.extensions.permissions.check import check_case, check_lines, parse_call
from crow.extensions.permissions.disk import Disk, LocalDisk
from crow.extensions.permissions.hook import PermissionsHook
from crow.extensions.permissions.permissions import MODES, Decision, Mode, Permissions
from crow.extensions.permissions.rule import Written

__all__ = [
    "MODES",
    "Decision",
    "Disk",
    "LocalDisk",
    "Mode",
    "Permissions",
    "PermissionsHook",
    "Written",
    "check_case",
    "check_lines",
    "parse_call",
]
