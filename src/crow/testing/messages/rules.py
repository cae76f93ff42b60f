"""The rules of the Messages protocol, and what its endpoint says where one is broken."""

from __future__ import annotations

from crow.testing.messages.conversation import CONVERSATION
from crow.testing.messages.parameters import REQUEST
from crow.testing.messages.request import MessagesRequest
from crow.testing.messages.rule import MessagesRule

RULES: tuple[MessagesRule, ...] = (*REQUEST, *CONVERSATION)
"""Every rule, in the order in which they are looked at."""


def broken(asked: MessagesRequest) -> tuple[MessagesRule, str] | None:
    """The first rule that a request breaks, and what is answered."""
    for rule in RULES:
        found = rule.broken(asked)
        if found is not None:
            return rule, rule.answer.format(*found)
    return None
