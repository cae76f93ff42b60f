"""Hooks that stand in settings files, as Claude Code writes them: programs, requests, prompts."""

from __future__ import annotations

from crow.extensions.shell_hooks.hook import ShellHooks

__all__ = ["ShellHooks"]
