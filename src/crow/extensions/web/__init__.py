"""The web: a tool that fetches a page as Markdown, and reaches nothing that is not public."""

from __future__ import annotations

from crow.extensions.web.hook import WebHook

__all__ = ["WebHook"]
