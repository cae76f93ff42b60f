"""Stores of sessions: the port, what is known of a session, and records that extensions attach."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crow._lazy import lazy

if TYPE_CHECKING:
    from crow.core.store import Attachment as Attachment
    from crow.core.store import Attachments as Attachments
    from crow.core.store import SessionInfo as SessionInfo
    from crow.core.store import Store as Store

_ROOMS = {
    "crow.core.store": "Attachment Attachments SessionInfo Store",
}

if not TYPE_CHECKING:  # a checker takes any name for there where it sees one
    __all__, __getattr__, __dir__ = lazy(__name__, _ROOMS)
