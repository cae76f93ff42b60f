"""Hooks that stand in settings files, as Claude Code writes them: programs, requests, prompts."""

from __future__ import annotations

from crow.extensions.shell_hooks.entry import Entry, File
from crow.extensions.shell_hooks.event import EVENTS, KNOWN, Event
from crow.extensions.shell_hooks.hook import ShellHooks

__all__ = ["EVENTS", "KNOWN", "Entry", "Event", "File", "ShellHooks"]
