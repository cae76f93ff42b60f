"""Models behind OpenAI-compatible endpoints: chat completions, streamed."""

from __future__ import annotations

from crow.llm.chat.endpoint import ChatCompletions
from crow.llm.chat.retry import NO_RETRIES, Retries, Timeouts

__all__ = ["NO_RETRIES", "ChatCompletions", "Retries", "Timeouts"]
