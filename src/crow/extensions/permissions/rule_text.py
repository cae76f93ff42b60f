"""The text of a rule, as it was written."""

from __future__ import annotations

from typing import NamedTuple


class RuleText(NamedTuple):
    """A rule as it was written: ``source`` names the settings, ``root`` is what ``/`` means."""

    text: str
    source: str = "session"
    root: str | None = None
