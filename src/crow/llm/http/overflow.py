"""Overflow of the context window: known by the wording of the refusal, with the numbers in it."""

from __future__ import annotations

import re

from crow.core.support.frozen import frozen

N = r"(?P<{}>\d[\d,]*)"
SENT, WINDOW = N.format("sent"), N.format("window")
PATTERNS = (  # the first that matches counts; `sent` and `window` are tokens
    rf"prompt is too long: {SENT} tokens > {WINDOW} maximum",  # Anthropic
    rf"exceed context limit: {SENT} \+ [\d,]+ > {WINDOW}",
    rf"maximum context length is {WINDOW} tokens?\.? [^.]*(?:resulted in|requested)[^.]*? {SENT}",
    rf"maximum context length (?:is|of) {WINDOW}",
    rf"input token count \({SENT}\) exceeds the maximum number of tokens allowed \({WINDOW}\)",
    rf"\"n_prompt_tokens\": ?{SENT}.*?\"n_ctx\": ?{WINDOW}",  # llama.cpp
    rf"\"n_ctx\": ?{WINDOW}",
    rf"request \({SENT} tokens\) exceeds the available context size \({WINDOW} tokens\)",
    rf"maximum prompt length is {WINDOW} but the request contains {SENT}",  # xAI
    rf"exceeded model token limit: {WINDOW} \(requested: {SENT}\)",  # Moonshot
    rf"too large for model with {WINDOW} maximum context length",  # Mistral
    rf"longer than the model's context length \({WINDOW} tokens\)",  # Together
    rf"range of input length should be \[1, ?{WINDOW}\]",  # Qwen
    r"exceeds the context window|context window exceeds limit",  # OpenAI, MiniMax
    r"model_context_window_exceeded|exceed_context_size_error",
    r"reduce the length of the messages",  # Groq
    r"\"code\": ?\"?1261\b",  # Z.ai
    r"context_length|context.{0,12}(?:length|window|size|limit)|prompt is too long|too many tokens",
    r"maximum.{0,20}tokens|input.{0,12}too long|reduce the length",
)
OTHERS = r"rate.?limit|too many tokens, please wait|per (?:minute|day)"
"""Of tokens, but of too many in too short a time."""


@frozen
class Overflow:
    """A request that is too long: the tokens it had and those that fit, where that was said."""

    sent: int | None = None
    window: int | None = None

    def __str__(self) -> str:
        if self.sent and self.window:
            return f"{self.sent:,} tokens were sent, and {self.window:,} fit"
        return f"{self.window:,} tokens fit" if self.window else ""


def overflow_in(text: str) -> Overflow | None:
    """The overflow that an endpoint speaks of; None where it speaks of something else."""
    if re.search(OTHERS, text, re.IGNORECASE):
        return None
    for pattern in PATTERNS:
        if found := re.search(pattern, text, re.IGNORECASE | re.DOTALL):
            numbers = {name: _number(value) for name, value in found.groupdict().items()}
            return Overflow(**numbers)
    return None


def _number(digits: str) -> int:
    return int(digits.replace(",", ""))
