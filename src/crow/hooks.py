"""More about hooks: their order, points of one's own, what wraps go around, the record of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crow._lazy import lazy

if TYPE_CHECKING:
    from crow.core.hooks.call_next import Next as Next
    from crow.core.hooks.call_next import NextCall as NextCall
    from crow.core.hooks.call_next import NextRequest as NextRequest
    from crow.core.hooks.output import HookResult as HookResult
    from crow.core.hooks.points import Point as Point
    from crow.core.hooks.registry import FIRST as FIRST
    from crow.core.hooks.registry import LAST as LAST
    from crow.core.trace import Record as Record

_ROOMS = {
    "crow.core.hooks.call_next": "Next NextCall NextRequest",
    "crow.core.hooks.output": "HookResult",
    "crow.core.hooks.points": "Point",
    "crow.core.hooks.registry": "FIRST LAST",
    "crow.core.trace": "Record",
}

if not TYPE_CHECKING:  # a checker takes any name for there where it sees one
    __all__, __getattr__, __dir__ = lazy(__name__, _ROOMS)
