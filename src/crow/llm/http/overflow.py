"""The window that a server names where it refuses a request as too long."""

from __future__ import annotations

import re

from crow.core.errors import ModelError
from crow.llm.http.form import said_in

SAID = (
    r"tokens? > (\d+) maximum",
    r"exceed context limit: \d+ \+ \d+ > (\d+)",
    r"maximum context length is (\d+)",
    r"maximum number of tokens allowed \(?(\d+)",
    r'"n_ctx":\s*(\d+)',
    r"maximum prompt length is (\d+)",
    r"exceeded model token limit: (\d+)",
    r"model with (\d+) maximum context length",
    r"context length \((\d+) tokens",
    r"input length should be \[1,? (\d+)\]",
)
"""The words of servers; the number is the window in tokens."""


def window_in(error: ModelError) -> int | None:
    """The window, where the error is of one that is too small and names it."""
    if error.kind != "context_length":
        return None
    text = said_in(error).replace(",", "")
    found = (re.search(pattern, text) for pattern in SAID)
    return next((int(match[1]) for match in found if match), None)
