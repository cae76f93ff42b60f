"""Settings files as one typed object, every value with the file that it came from.

Read from, the stronger later: the user's, the project's, the project's local, the command line's,
the managed ones; in each place ``.claude`` before ``.crow``. Of a project that the user has not
trusted only deny and ask rules are taken.
"""

from __future__ import annotations

from crow.settings.files import Memory
from crow.settings.reading import Reader, load
from crow.settings.settings import Settings
from crow.settings.values import (
    Entry,
    Permissions,
    SettingsError,
    Source,
    Unused,
    Withheld,
)

__all__ = [
    "Entry",
    "Memory",
    "Permissions",
    "Reader",
    "Settings",
    "SettingsError",
    "Source",
    "Unused",
    "Withheld",
    "load",
]
