"""Errors that Crow raises for people. Each is a `crow.CrowError`."""

from __future__ import annotations

from crow.core.errors import (
    CrowError,
    ExtensionError,
    HookError,
    ModelError,
    SessionError,
    SessionInUse,
)

__all__ = ["CrowError", "ExtensionError", "HookError", "ModelError", "SessionError", "SessionInUse"]
