"""Working trees of git that sessions have to themselves."""

from __future__ import annotations

from crow.extensions.worktrees.hook import WorktreesHook

__all__ = ["WorktreesHook"]
