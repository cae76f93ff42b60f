"""The words of a conversation: what a message is made of, and what is asked of one."""

from __future__ import annotations

from crow.core.messages import (
    INTERRUPTED,
    AudioPart,
    Content,
    ImagePart,
    Part,
    TextPart,
    TokenCount,
    ToolCall,
    ToolSpec,
    add_usage,
    context_block,
    is_prompt,
    text_of,
    thought_of,
    tool_answer,
    user,
    weight,
)

__all__ = [
    "INTERRUPTED",
    "AudioPart",
    "Content",
    "ImagePart",
    "Part",
    "TextPart",
    "TokenCount",
    "ToolCall",
    "ToolSpec",
    "add_usage",
    "context_block",
    "is_prompt",
    "text_of",
    "thought_of",
    "tool_answer",
    "user",
    "weight",
]
