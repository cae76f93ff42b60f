"""Type annotations and docstrings, read: as JSON Schema, and in words."""

from __future__ import annotations

from crow.core.support.frozen import frozen


@frozen
class Arg:
    """More about a parameter, written inside ``Annotated``.

    ``name`` is what the model calls it, where that is no Python name (``-i``); ``minimum`` and
    ``maximum`` bound a number, which is more than ``above``.
    """

    description: str = ""
    name: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
