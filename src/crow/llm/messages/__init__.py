"""Models behind Anthropic's Messages protocol, at Anthropic and at those who speak it too."""

from __future__ import annotations

from crow.llm.messages.anthropic import AnthropicMessages

__all__ = ["AnthropicMessages"]
