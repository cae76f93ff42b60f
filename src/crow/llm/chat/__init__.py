"""Models behind OpenAI-compatible endpoints: chat completions, streamed."""

from __future__ import annotations

from crow.llm.chat.completions import ChatCompletions

__all__ = ["ChatCompletions"]
