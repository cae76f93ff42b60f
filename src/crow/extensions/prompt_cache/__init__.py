"""Prompt cache: whether each request begins with what the one before was, and who changed that."""

from __future__ import annotations

from crow.extensions.prompt_cache.hook import PromptCacheHook

__all__ = ["PromptCacheHook"]
