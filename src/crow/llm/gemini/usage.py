"""A Gemini model's tokens."""

from __future__ import annotations

from typing import Any

from crow.core.messages import Usage


def usage_of(reported: dict[str, Any]) -> Usage | None:
    """What ``usageMetadata`` says; None where it says nothing.

    Thoughts are counted beside the candidates there, and what tools of Google's own added to the
    prompt beside the prompt.
    """
    counts = {name: value for name, value in reported.items() if isinstance(value, int)}
    if not counts:
        return None
    given = counts.get("promptTokenCount", 0) + counts.get("toolUsePromptTokenCount", 0)
    thoughts = counts.get("thoughtsTokenCount", 0)
    written = counts.get("candidatesTokenCount", 0) + thoughts
    usage: Usage = {
        "input_tokens": given,
        "output_tokens": written,
        "total_tokens": counts.get("totalTokenCount", given + written),
    }
    if "cachedContentTokenCount" in counts:
        usage["cached_tokens"] = counts["cachedContentTokenCount"]
    if thoughts:
        usage["reasoning_tokens"] = thoughts
    return usage
