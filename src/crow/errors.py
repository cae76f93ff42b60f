"""Errors that Crow raises for people. Each is a `crow.CrowError`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crow._lazy import lazy

if TYPE_CHECKING:
    from crow.core.errors import ExtensionError as ExtensionError
    from crow.core.errors import HookError as HookError
    from crow.core.errors import ModelError as ModelError
    from crow.core.errors import SessionError as SessionError
    from crow.core.errors import SessionInUse as SessionInUse

_ROOMS = {
    "crow.core.errors": "ExtensionError HookError ModelError SessionError SessionInUse",
}

if not TYPE_CHECKING:  # a checker takes any name for there where it sees one
    __all__, __getattr__, __dir__ = lazy(__name__, _ROOMS)
