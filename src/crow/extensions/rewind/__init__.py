"""Keeps what files were before a session changed them, and brings them back."""

from __future__ import annotations

from crow.extensions.rewind.hook import RewindHook

__all__ = ["RewindHook"]
