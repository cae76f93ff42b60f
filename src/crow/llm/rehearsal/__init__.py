"""The embedded model: needs no key and no network, and never pretends to be more."""

from __future__ import annotations

from crow.llm.rehearsal.model import Rehearsal

__all__ = ["Rehearsal"]
