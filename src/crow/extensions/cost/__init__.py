"""Cost: what the tokens of a run and of a session cost, in US dollars."""

from __future__ import annotations

from crow.extensions.cost.hook import CostHook

__all__ = ["CostHook"]
