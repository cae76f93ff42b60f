"""Errors that Crow raises for people. Each is a `crow.CrowError`."""

from __future__ import annotations

from crow.core.errors import ExtensionError, HookError, ModelError, SessionError, SessionInUse

__all__ = ["ExtensionError", "HookError", "ModelError", "SessionError", "SessionInUse"]
