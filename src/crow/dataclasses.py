"""Data classes that take a tenth of the time to be made, for what every start imports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crow._lazy import lazy

if TYPE_CHECKING:
    from crow.core.support.frozen import frozen as frozen
    from crow.core.support.frozen import mutable as mutable

_ROOMS = {
    "crow.core.support.frozen": "frozen mutable",
}

if not TYPE_CHECKING:  # a checker takes any name for there where it sees one
    __all__, __getattr__, __dir__ = lazy(__name__, _ROOMS)
