"""Stores of sessions: the port, what is known of a session, and records that extensions attach."""

from __future__ import annotations

from crow.core.store import Attachment, Attachments, SessionInfo, Store

__all__ = ["Attachment", "Attachments", "SessionInfo", "Store"]
