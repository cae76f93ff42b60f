"""A rule of a protocol, as a double looks at it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from crow.core.support.frozen import frozen
from crow.testing.messages.request import MessagesRequest

Found: TypeAlias = tuple[Any, ...] | None
"""What is wrong, for the answer's blanks; None where nothing is."""


@frozen
class MessagesRule:
    """Something that is refused. ``broken`` says what is wrong; ``answer`` has blanks for that."""

    id: str
    broken: Callable[[MessagesRequest], Found]
    answer: str
    status: int = 400
    kind: str = "invalid_request_error"
