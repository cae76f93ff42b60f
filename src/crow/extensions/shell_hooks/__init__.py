"""Hooks that stand in settings files, as Claude Code writes them: programs, requests, prompts."""

from __future__ import annotations

from crow.extensions.shell_hooks.entry import Entry, File
from crow.extensions.shell_hooks.event import EVENTS, KNOWN, OWN_EVENTS, Event
from crow.extensions.shell_hooks.hook import ShellHooks

__all__ = ["EVENTS", "KNOWN", "OWN_EVENTS", "Entry", "Event", "File", "ShellHooks"]
