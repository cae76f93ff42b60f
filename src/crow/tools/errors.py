"""The one error of this room: something that the model is told."""

from __future__ import annotations


class ToolError(Exception):
    """Raised inside a tool's function to answer the call with an error, in these words."""
