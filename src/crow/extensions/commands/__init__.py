"""Slash commands: the ones about the session itself, and those that people keep in files."""

from __future__ import annotations

from crow.extensions.commands.hook import CommandsHook

__all__ = ["CommandsHook"]
