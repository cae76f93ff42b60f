"""The one error of this room: something that the model is told."""

from __future__ import annotations


class ToolError(Exception):
    """Raised inside a tool's function to answer the call with an error, in these words."""


def reason_of(error: OSError | ValueError) -> str:
    """What the system says of it, without numbers and without the name once more."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
