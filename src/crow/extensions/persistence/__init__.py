"""Sessions that outlive their process: one SQLite file, an append-only log."""

from __future__ import annotations

from crow.extensions.persistence.hook import PersistenceHook

__all__ = ["PersistenceHook"]
