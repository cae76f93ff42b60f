"""Servers of the Model Context Protocol: their tools, prompts and resources in a session."""

from __future__ import annotations

from crow.extensions.mcp.events import ElicitationContext, ElicitationResultContext
from crow.extensions.mcp.hook import McpHook

__all__ = ["ElicitationContext", "ElicitationResultContext", "McpHook"]
