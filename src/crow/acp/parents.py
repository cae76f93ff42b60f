"""Whose a sub-agent's calls are: the cards name the call that they are made for.

There is no word for it in the protocol. The one that clients read is that of the adapter for Claude
Code: ``claudeCode.parentToolUseId`` in the ``_meta`` of a card.
"""

from __future__ import annotations

from crow.acp.jsonrpc import Message, as_object


def owned(updates: list[Message], parent: str) -> list[Message]:
    """Updates of calls that are made for the call ``parent``; as they are where that is none."""
    if not parent:
        return updates
    return [_owned(update, parent) if "toolCallId" in update else update for update in updates]


def _owned(update: Message, parent: str) -> Message:
    link = {"claudeCode": {"parentToolUseId": parent}}
    return {**update, "_meta": {**as_object(update.get("_meta")), **link}}
