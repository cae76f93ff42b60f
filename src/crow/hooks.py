"""More about hooks: their order, points of one's own, what wraps go around, the record of a run."""

from __future__ import annotations

from crow.core.hooks.call_next import Next, NextCall, NextRequest
from crow.core.hooks.output import HookResult
from crow.core.hooks.points import Point
from crow.core.hooks.registry import FIRST, LAST
from crow.core.trace import Record

__all__ = ["FIRST", "LAST", "HookResult", "Next", "NextCall", "NextRequest", "Point", "Record"]
