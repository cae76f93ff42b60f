"""How many tokens a request to a well-known model may have; ``windows.json`` has the table."""

from __future__ import annotations

import json
from pathlib import Path

TABLE = Path(__file__).with_name("windows.json")


def context_window(model: str) -> int | None:
    """The window of a model by the beginning of its name, the longest that fits; None if unknown.

    What stands before the last slash is not looked at.
    """
    name = model.rpartition("/")[2].lower()
    table: dict[str, int] = json.loads(TABLE.read_text("utf-8"))
    fitting = [beginning for beginning in table if name.startswith(beginning)]
    return table[max(fitting, key=len)] if fitting else None
