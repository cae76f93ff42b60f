"""Compaction: makes room in the model's window before it is full, without losing the thread."""

from __future__ import annotations

from crow.extensions.compaction.hook import CompactionHook

__all__ = ["CompactionHook"]
